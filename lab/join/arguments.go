package join

import "strings"

// flagValue is the last value that the words of a command give to a flag.
func flagValue(words []string, name string) (value string) {
	for i, word := range words {
		flag, dashed := strings.CutPrefix(word, "-")
		if !dashed {
			continue
		}
		key, v, given := strings.Cut(strings.TrimPrefix(flag, "-"), "=")
		switch {
		case key != name:
		case given:
			value = v
		case i+1 < len(words):
			value = words[i+1]
		}
	}
	return value
}

// parseEnvironment reads KEY=VALUE lines with optional quotes around the value, and comments.
func parseEnvironment(text string) map[string]string {
	env := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "export ")
		if key, value, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, ";") {
			env[strings.TrimSpace(key)] = unquote(strings.TrimSpace(value))
		}
	}
	return env
}

func unquote(s string) string {
	if len(s) >= 2 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		return s[1 : len(s)-1]
	}
	return s
}
