package event

import "strings"

// Fold breaks a line between its words into lines of at most width columns. With commands, what stands between backticks is a command: it
// stays in one piece where it fits, and where not it goes on after a backslash, so that it can still be pasted. A single word, such as a
// path, may then be wider than the width: the terminal wraps it without breaking it.
func Fold(s string, width int, commands bool) []string {
	var lines []string
	line := ""
	end := func() {
		if line != "" {
			lines = append(lines, line)
		}
		line = ""
	}
	for _, word := range words(s, commands) {
		if line != "" && Columns(line)+1+Columns(word) > width {
			end()
		}
		if line != "" {
			line += " " + word
			continue
		}
		parts := []string{word}
		if Columns(word) > width {
			if parts = Chop(word, width); commands {
				parts = continued(word, width)
			}
		}
		lines = append(lines, parts[:len(parts)-1]...)
		line = parts[len(parts)-1]
	}
	end()
	return lines
}

// words splits at blanks, with commands not at those between two backticks, of which there must be an even number.
func words(s string, commands bool) []string {
	if !commands {
		return strings.Fields(s)
	}
	inside := false
	return strings.FieldsFunc(s, func(r rune) bool {
		if r == '`' {
			inside = !inside
		}
		return r == ' ' && !inside
	})
}

// continued breaks a command at blanks that the shell does not keep, with a backslash at each end but the last.
func continued(command string, width int) []string {
	var quote rune
	pieces := strings.FieldsFunc(command, func(r rune) bool {
		switch {
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		case r == quote:
			quote = 0
		}
		return r == ' ' && quote == 0
	})
	var lines []string
	for _, p := range pieces {
		last := len(lines) - 1
		if last >= 0 && Columns(lines[last])+1+Columns(p)+len(` \`) <= width {
			lines[last] += " " + p
		} else {
			lines = append(lines, p)
		}
	}
	for i := range lines[:max(0, len(lines)-1)] {
		lines[i] += ` \`
	}
	return lines
}

// Chop breaks a word that is wider than a line.
func Chop(word string, width int) []string {
	var parts []string
	part, taken := "", 0
	for _, r := range word {
		n := Columns(string(r))
		if taken+n > width && part != "" {
			parts, part, taken = append(parts, part), "", 0
		}
		part, taken = part+string(r), taken+n
	}
	return append(parts, part)
}
