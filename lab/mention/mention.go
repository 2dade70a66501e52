// Package mention finds the commands that texts tell people to run, and asks cobra whether they exist. It is for tests.
package mention

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// Problems are the commands of the program root that the text names and that do not exist, or not with these flags or arguments. What stands
// in code is a command throughout; in prose, where the program's name is the subject of a sentence more often, only what looks like one.
func Problems(root *cobra.Command, t Text) (problems []string, commands int) {
	name := regexp.MustCompile(`(^|[^\w-])` + root.Name() + ` `)
	look := func(s string, code bool) {
		for _, at := range name.FindAllStringIndex(s, -1) {
			before := s[:at[1]-len(root.Name())-1]
			c := command{words: words(s[at[1]:]), code: code && begins.MatchString(before), told: told(before)}
			if problem := c.problem(root); problem != "" {
				problems = append(problems, fmt.Sprintf("%s: %s %s: %s", t.Place, root.Name(), strings.Join(c.words, " "), problem))
			}
			if c.known {
				commands++
			}
		}
	}
	for _, s := range t.Code {
		line, remark, _ := strings.Cut(s, " # ")
		look(line, true)
		look(remark, false)
	}
	for _, s := range t.Prose {
		look(s, false)
	}
	return problems, commands
}

// begins is what stands in code before a command.
var begins = regexp.MustCompile(`(^|[|;&(]|\$|bin/|--)\s*(bin/)?$`)

// told reports whether what stands before a name in prose says that a command follows.
func told(before string) bool {
	before = before[strings.LastIndex(before, "\n")+1:]
	return strings.Contains(strings.ToLower(before), "next: ") || toRun.MatchString(before)
}

var toRun = regexp.MustCompile(`(^|\W)([Rr]un|[Tt]ry|bin/)\W?$`)

// end is where a command ends in a line.
var end = regexp.MustCompile("[|;&<>\n`\"]|\\$\\(|\\s#|\\s2>| – | \\\\$")

// words are those of a command.
func words(s string) []string {
	if at := end.FindStringIndex(s); at != nil {
		s = s[:at[0]]
	}
	return strings.Fields(s)
}

type command struct {
	words []string
	code  bool // nothing else follows
	told  bool // it is a command, and a sentence may follow
	known bool // it is a command, not prose
}

var (
	open  = regexp.MustCompile(`…|\.\.\.`)          // more than is said
	other = regexp.MustCompile(`^[^a-z]|^X$|[A-Z]`) // a placeholder
	plain = regexp.MustCompile(`^[a-z][a-z-]*$`)
)

// problem says why the command cannot be run, "" if it can or is none.
func (c *command) problem(root *cobra.Command) string {
	at, args, whole := root, []string{}, true
	for i := 0; i < len(c.words); i++ {
		word, last := trimmed(c.words[i])
		whole = whole && !open.MatchString(c.words[i]) && !strings.ContainsAny(c.words[i], "[]")
		switch sub := child(at, word); {
		case word == "--", word == "" || open.MatchString(word), passesOn(at, args):
			return c.arguments(at, args, false)
		case strings.HasPrefix(word, "-") && len(word) > 1:
			takesValue, exists := flag(at, word)
			if !exists {
				c.known = true
				return "there is no flag " + word
			}
			if takesValue && !last {
				i++
			}
		case sub != nil:
			at, c.known = sub, true
		case at.HasSubCommands():
			if !plain.MatchString(word) || !c.code && !c.told && !c.looksLikeOne(i) {
				return ""
			}
			return "there is no command " + word
		default:
			args = append(args, word)
		}
		if last {
			break
		}
	}
	return c.arguments(at, args, whole)
}

// passesOn reports whether what follows is another program's: kubectl's arguments, or a command on a node.
func passesOn(at *cobra.Command, args []string) bool {
	return at.DisableFlagParsing || len(args) > 0 && strings.Contains(at.Use, "COMMAND")
}

// arguments are judged only in code, and when all of them are there.
func (c *command) arguments(at *cobra.Command, args []string, whole bool) string {
	if !c.code || !whole || len(args) == 0 || at.Args == nil {
		return ""
	}
	if err := at.Args(at, args); err != nil {
		return err.Error()
	}
	return ""
}

// looksLikeOne reports whether the word in prose is followed by what only commands have.
func (c *command) looksLikeOne(i int) bool {
	return i+1 < len(c.words) && (strings.HasPrefix(c.words[i+1], "--") || other.MatchString(c.words[i+1]) && plain.MatchString(c.words[i]))
}

// trimmed is a word without the brackets and the punctuation around it; last when punctuation ends the command.
func trimmed(word string) (string, bool) {
	bare := strings.Trim(word, "[]()")
	short := strings.TrimRight(bare, ",.:'")
	if open.MatchString(bare) {
		return bare, false
	}
	return short, short != bare || strings.HasSuffix(word, ")")
}

func child(of *cobra.Command, name string) *cobra.Command {
	for _, c := range of.Commands() {
		if c.Name() == name || c.HasAlias(name) {
			return c
		}
	}
	return nil
}

// flag finds a flag, and whether its value is the next word.
func flag(of *cobra.Command, word string) (takesValue, exists bool) {
	of.InitDefaultHelpFlag()
	inherited := of.InheritedFlags()
	name, _, valued := strings.Cut(strings.TrimLeft(word, "-"), "=")
	f := of.Flag(name)
	if !strings.HasPrefix(word, "--") {
		valued = valued || len(name) > 1 // -ojson
		if f = of.Flags().ShorthandLookup(name[:1]); f == nil {
			f = inherited.ShorthandLookup(name[:1])
		}
	}
	return f != nil && f.NoOptDefVal == "" && !valued, f != nil
}
