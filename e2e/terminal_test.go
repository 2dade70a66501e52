//go:build e2e

package e2e

import (
	"context"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// asked runs labctl as somebody at a terminal does, who types the answer to each question as often as it comes. All that labctl writes is in
// stdout, but not what was typed: the terminal shows nothing of it.
func (l *lab) asked(ctx context.Context, answers map[string]string, args ...string) result {
	GinkgoHelper()
	command := "stty -echo; exec " + strings.Join(slices.Concat(l.enter, []string{suite.labctl, "-c", l.config}, args), " ")
	r := &running{lab: l, shown: "labctl " + strings.Join(args, " "), begun: time.Now()}
	r.cmd = exec.CommandContext(ctx, "script", "--quiet", "--return", "--command", command, "/dev/null")
	r.cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+l.home)
	r.cmd.WaitDelay = 5 * time.Second
	keyboard, err := r.cmd.StdinPipe()
	Expect(err).NotTo(HaveOccurred())
	r.cmd.Stdout = &typist{screen: &r.stdout, keyboard: keyboard, answers: answers}
	r.cmd.Stderr = &r.stderr
	Expect(r.cmd.Start()).To(Succeed())
	return r.wait()
}

// typist reads a screen, and types what answers the questions on it.
type typist struct {
	screen, keyboard io.Writer
	answers          map[string]string // by a part of the question
	unanswered       string
}

func (t *typist) Write(b []byte) (int, error) {
	t.unanswered += string(b)
	for question, text := range t.answers {
		if _, rest, asked := strings.Cut(t.unanswered, question); asked {
			t.unanswered = rest
			_, _ = io.WriteString(t.keyboard, text+"\n")
		}
	}
	return t.screen.Write(b)
}
