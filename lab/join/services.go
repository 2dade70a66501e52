package join

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"k8slab/lab/command"
)

func (u unit) active() bool { return u["ActiveState"] == "active" }
func (u unit) absent() bool { return u["LoadState"] == "not-found" || u["LoadState"] == "" }
func (u unit) masked() bool {
	return u["LoadState"] == "masked" || strings.HasPrefix(u["UnitFileState"], "masked")
}

// state is how people read it.
func (u unit) state() string {
	if u.absent() {
		return "not installed"
	}
	if u.masked() {
		return "masked, " + u["ActiveState"]
	}
	return u["ActiveState"] + " (" + u["SubState"] + ")"
}

const unitProperties = "Id,LoadState,ActiveState,SubState,UnitFileState,ExecStart,Environment,EnvironmentFiles,FragmentPath,DropInPaths,NeedDaemonReload,MainPID"

// said is the last line that a failed program printed, or its error when it said nothing.
func said(err error) string {
	failure, ok := errors.AsType[*command.Error](err)
	if !ok || strings.TrimSpace(failure.Output) == "" {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(failure.Output), "\n")
	return lines[len(lines)-1]
}

// ParseUnits reads the KEY=VALUE blocks of `systemctl show`, one a unit, with empty lines between. A key that comes again (a list) is
// joined by spaces.
func ParseUnits(out string) map[string]unit {
	found := map[string]unit{}
	for block := range strings.SplitSeq(out, "\n\n") {
		u := unit{}
		for line := range strings.Lines(block) {
			key, value, ok := strings.Cut(strings.TrimRight(line, "\n"), "=")
			if old := u[key]; ok && old != "" {
				value = old + " " + value
			}
			if ok {
				u[key] = value
			}
		}
		if u["Id"] != "" {
			found[u["Id"]] = u
		}
	}
	return found
}

// environment is what the unit's processes get: its own settings, and on top those of its environment files, as systemd applies them.
func (m Machine) environment(u unit) map[string]string {
	env := map[string]string{}
	for _, entry := range command.SplitQuoted(u["Environment"]) {
		if key, value, ok := strings.Cut(entry, "="); ok {
			env[key] = value
		}
	}
	// "/etc/default/kubelet (ignore_errors=yes) /var/lib/..."
	for _, path := range strings.Fields(u["EnvironmentFiles"]) {
		if strings.HasPrefix(path, "/") {
			text, _ := m.Read(path)
			maps.Copy(env, parseEnvironment(text))
		}
	}
	return env
}

// journal returns the last lines of a unit's log, "" when there is none.
func (m Machine) journal(ctx context.Context, name string, lines int) string {
	out, err := m.Run(ctx, "journalctl", "--unit="+name, "--no-pager", "--quiet", "--output=cat", fmt.Sprintf("--lines=%d", lines))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(out)
}
