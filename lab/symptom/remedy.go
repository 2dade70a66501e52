package symptom

import (
	"regexp"
	"slices"
	"strings"
)

// Remedy is what a person does about a cause where labctl may not: whoever set a mount, a packet filter or a proxy may want it. Text is a
// part of a hint, with the commands in backquotes, in order. Words in capitals stand for values, which a finding's hint has in their place.
type Remedy struct {
	Text         string
	ControlPlane bool // the commands are for any control plane, and not for the finding's node
}

// The remedies of findings that name what to act on.
var (
	Unmount         = Remedy{Text: "`umount --lazy DIR`"}
	DeleteRule      = Remedy{Text: "`nft delete rule FAMILY TABLE CHAIN handle HANDLE`"}
	AcceptPackets   = Remedy{Text: "`nft chain FAMILY TABLE CHAIN '{ policy accept ; }'`"}
	DeleteRoute     = Remedy{Text: "`ip route delete unreachable DESTINATION`"}
	StopUnit        = Remedy{Text: "`systemctl stop UNIT`"}
	UnsetVariable   = Remedy{Text: "`systemctl unset-environment VARIABLE`"}
	RemoveProxyLine = Remedy{Text: "`sed -i '/https_proxy=/Id' FILE`, `systemctl daemon-reload`, `systemctl restart kubelet`"}
	DeleteObject    = Remedy{Text: "`kubectl delete KIND NAME`"}
	// kubeadm leaves a ConfigMap alone that is there.
	RenewClusterInfo = Remedy{ControlPlane: true,
		Text: "`kubectl -n kube-public delete configmap cluster-info`, `kubeadm init phase bootstrap-token`"}
)

// remedies are all whose commands may be run as a hint has them: those above, and what hints say of services and of labctl.
var remedies = []Remedy{
	Unmount, DeleteRule, AcceptPackets, DeleteRoute, StopUnit, UnsetVariable, RemoveProxyLine, DeleteObject, RenewClusterInfo,
	{Text: "`systemctl unmask UNIT`, `systemctl enable --now UNIT`, `systemctl restart UNIT`, `systemctl restart containerd kubelet`"},
	{Text: "`labctl up`, `labctl repair`, `labctl repair --up-to RUNG`"},
}

// Command is a command of a hint, ready to be run without a shell.
type Command struct {
	Argv         []string
	ControlPlane bool // see Remedy
}

func (c Command) String() string { return strings.Join(c.Argv, " ") }

var (
	placeholder = regexp.MustCompile(`\b(DIR|FAMILY|TABLE|CHAIN|HANDLE|DESTINATION|UNIT|VARIABLE|FILE|KIND|NAME|RUNG)\b`)
	inQuotes    = regexp.MustCompile("`([^`]+)`")
	plain       = regexp.MustCompile(`^[\w@%+=:,./-]+$`)         // nothing that a shell would read
	unsayable   = regexp.MustCompile("['`\\p{C}\\p{Zl}\\p{Zp}]") // it would end a quotation, or the line
)

// With is the text with the values in place of its placeholders, in order, each quoted for a shell. A value that cannot be written into a
// hint leaves its placeholder to the person.
func (r Remedy) With(values ...string) string {
	next := 0
	return placeholder.ReplaceAllStringFunc(r.Text, func(word string) string {
		value := word
		if next < len(values) {
			value = values[next]
		}
		next++
		switch {
		case value == "" || unsayable.MatchString(value):
			return word
		case plain.MatchString(value):
			return value
		}
		return "'" + value + "'"
	})
}

// Commands are those of the remedy in a hint, in the hint's order, with the hint's values. One with a placeholder left is not among them.
func (r Remedy) Commands(hint string) (found []Command) {
	templates := inQuotes.FindAllStringSubmatch(r.Text, -1)
	for _, text := range inQuotes.FindAllStringSubmatch(hint, -1) {
		argv := splitQuoted(text[1])
		if slices.ContainsFunc(templates, func(t []string) bool { return fills(splitQuoted(t[1]), argv) }) {
			found = append(found, Command{argv, r.ControlPlane})
		}
	}
	return found
}

// Commands are the commands of all remedies in a hint, in the hint's order. Whatever else a hint has in backquotes only looks, or needs a
// person's judgement.
func Commands(hint string) (found []Command) {
	for _, text := range inQuotes.FindAllString(hint, -1) {
		for _, r := range remedies {
			if commands := r.Commands(text); len(commands) > 0 {
				found = append(found, commands...)
				break
			}
		}
	}
	return found
}

// fills reports whether the words are the template's, with a value for each placeholder. What looks like an option is no value.
func fills(template, argv []string) bool {
	return slices.EqualFunc(template, argv, func(want, got string) bool {
		if !placeholder.MatchString(want) {
			return got == want
		}
		return got != "" && placeholder.FindString(got) != got && !strings.HasPrefix(got, "-")
	})
}

// splitQuoted is the words of a command. Single quotes keep one together.
func splitQuoted(s string) (words []string) {
	var word strings.Builder
	begun, quoted := false, false
	for _, r := range s + " " {
		switch {
		case r == '\'':
			begun, quoted = true, !quoted
		case r == ' ' && !quoted:
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			begun = true
			word.WriteRune(r)
		}
	}
	return words
}
