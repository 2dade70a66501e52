package join

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"
)

// journalLine is one message of a unit's log.
type journalLine struct {
	unit string // without ".service"
	text string
}

// followJournal hands on what kubelet and the runtime log from now on, until ctx ends. A machine without journalctl has none.
func (e *Engine) followJournal(ctx context.Context) <-chan journalLine {
	argv := e.Journal
	if len(argv) == 0 {
		argv = []string{"journalctl", "--follow", "--lines=0", "--output=json", "--unit=kubelet.service", "--unit=containerd.service", "--unit=crio.service"}
	}
	lines := make(chan journalLine)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.WaitDelay = time.Second
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		close(lines)
		return lines
	}
	go func() {
		defer close(lines)
		defer func() { _ = cmd.Wait() }()
		// A child process that journalctl left behind may keep the pipe open.
		defer context.AfterFunc(ctx, func() { _ = out.Close() })()
		in := bufio.NewScanner(out)
		in.Buffer(nil, 1<<20)
		for in.Scan() {
			l, ok := parseJournal(in.Bytes())
			if !ok {
				continue
			}
			select {
			case lines <- l:
			case <-ctx.Done():
				return
			}
		}
	}()
	return lines
}

// parseJournal reads one line of `journalctl --output=json`. systemd's own words about a unit name it in UNIT. A message that is not UTF-8
// comes as a list of bytes.
func parseJournal(data []byte) (journalLine, bool) {
	var entry struct {
		Message     json.RawMessage `json:"MESSAGE"`
		Unit        string          `json:"UNIT"`
		SystemdUnit string          `json:"_SYSTEMD_UNIT"`
	}
	if json.Unmarshal(data, &entry) != nil {
		return journalLine{}, false
	}
	var l journalLine
	if json.Unmarshal(entry.Message, &l.text) != nil {
		var raw []int
		if json.Unmarshal(entry.Message, &raw) != nil {
			return journalLine{}, false
		}
		var b strings.Builder
		for _, c := range raw {
			_ = b.WriteByte(byte(c))
		}
		l.text = strings.ToValidUTF8(b.String(), "?")
	}
	l.unit = entry.Unit
	if l.unit == "" {
		l.unit = entry.SystemdUnit
	}
	l.unit = strings.TrimSuffix(l.unit, ".service")
	return l, l.text != ""
}

// journalNews are the messages that people want to see: errors, and systemd on a unit that ended.
var journalNews = regexp.MustCompile(`^[EF]\d{4} |level=(?:error|fatal)|Main process exited|Failed to start|failed to run`)

func (l journalLine) news() bool { return journalNews.MatchString(l.text) }

// FromJournal reports whether the detail of an event of a join is what kubelet or the runtime logged, as journalLine shows it.
func FromJournal(detail string) bool {
	unit, _, logged := strings.Cut(detail, ": ")
	return logged && slices.Contains([]string{"kubelet", "containerd", "crio"}, unit)
}

func (l journalLine) String() string { return fmt.Sprintf("%s: %s", l.unit, parseLine(l.text).text) }
