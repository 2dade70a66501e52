package diagnose

import (
	"strings"
	"testing"

	"k8slab/lab/event"
	"k8slab/lab/symptom"
)

func TestFold(t *testing.T) {
	for _, c := range []struct {
		name, text string
		width      int
		commands   bool
		want       []string
	}{
		{"nothing", "", 10, false, nil},
		{"between words", "one two three", 8, false, []string{"one two", "three"}},
		{"a long word", "a 0123456789abc b", 5, false, []string{"a", "01234", "56789", "abc b"}},
		{"wide characters", "世界世界", 5, false, []string{"世界", "世界"}},
		{"a command stays in one piece", "then `kubeadm reset -f` here", 20, true, []string{"then", "`kubeadm reset -f`", "here"}},
		{"what follows a command stays with it", "run `a b`, then", 10, true, []string{"run `a b`,", "then"}},
		{"a long command goes on after a backslash", "`kubeadm init phase upload-certs`", 16, true, []string{`` + "`kubeadm init \\", "phase \\", "upload-certs`"}},
		{"not within quotes", "`grep 'a b c d' file`", 9, true, []string{"`grep \\", `'a b c d' \`, "file`"}},
		{"backticks in evidence mean nothing", "`a b c", 4, false, []string{"`a b", "c"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := fold(c.text, c.width, c.commands)
			if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// TestHintsFold folds every hint of the catalogue at every width: nothing is lost, and a command that fits on a line is on one.
func TestHintsFold(t *testing.T) {
	for _, s := range symptom.All() {
		if got := shownText(s.Hint, hintMost); got != s.Hint {
			t.Errorf("%s: shown as %q", s.ID, got)
		}
		for width := leastWidth - gutter; width <= mostWidth-gutter; width++ {
			lines := fold(s.Hint, width, true)
			whole := strings.ReplaceAll(strings.Join(lines, "\n"), " \\\n", " ")
			if strings.ReplaceAll(whole, "\n", " ") != strings.Join(strings.Fields(s.Hint), " ") {
				t.Fatalf("%s at %d:\n%s", s.ID, width, strings.Join(lines, "\n"))
			}
			for _, line := range lines {
				if event.Columns(line) > width && strings.Contains(strings.TrimSuffix(line, ` \`), " ") {
					t.Errorf("%s: %d columns of %d: %s", s.ID, event.Columns(line), width, line)
				}
			}
			for _, command := range commandsOf(s.Hint) {
				if event.Columns(command) <= width-4 && !strings.Contains(strings.Join(lines, "\n"), command) { // 4 for what stands around it
					t.Errorf("%s at %d breaks %s", s.ID, width, command)
				}
			}
		}
	}
}

func commandsOf(hint string) []string {
	var all []string
	for _, p := range hintParts(hint) {
		if p.Command {
			all = append(all, "`"+p.Text+"`")
		}
	}
	return all
}
