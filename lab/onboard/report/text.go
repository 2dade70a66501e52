package report

import (
	"regexp"
	"strings"

	"k8slab/lab/event"
)

// maxText bounds every text that is not ours, in bytes: an error may be a whole log.
const maxText = 1500

// clean makes a text fit to be shown: without secrets and control characters, its lines kept, of a bounded length.
func clean(text string) string {
	var lines []string
	for line := range strings.Lines(event.Redact(strings.ToValidUTF8(text, "?"))) {
		if line = strings.TrimSpace(event.OneLine(line)); line != "" {
			lines = append(lines, line)
		}
	}
	text = strings.Join(lines, "\n")
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	return text
}

// special are the characters that mean something to Markdown within a line. HTML's are written as entities, as not every reader of Markdown
// takes a backslash before them.
var special = strings.NewReplacer(
	"&", "&amp;", "<", "&lt;", ">", "&gt;", `\`, `\\`, "`", "\\`", "*", `\*`, "[", `\[`, "]", `\]`, "|", `\|`, "~", `\~`, "$", `\$`,
)

// loose is an underscore that may begin or end emphasis; within a word it is a letter.
var loose = regexp.MustCompile(`(^|[^A-Za-z0-9_])(_+)|(_+)($|[^A-Za-z0-9_])`)

// opening is what may make a heading, a list or a rule of the line that it begins.
var opening = regexp.MustCompile(`^([0-9]*)([-#+=.)]+)( |$)`)

// markdown is a text as one line of Markdown, for a paragraph, the item of a list or the cell of a table.
func markdown(text string) string {
	text = loose.ReplaceAllStringFunc(text, func(s string) string { return strings.ReplaceAll(s, "_", "\x00_") })
	text = opening.ReplaceAllString(special.Replace(strings.ReplaceAll(text, "\n", "; ")), `$1\$2$3`)
	return strings.ReplaceAll(text, "\x00", `\`)
}
