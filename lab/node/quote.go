package node

import (
	"errors"
	"fmt"
	"strings"
)

// Linux refuses a single argument this long, and sshd hands the login shell the whole command as one argument.
const maxLine = 128<<10 - 1

// Words a shell would not take as a command name unless quoted.
var reserved = map[string]bool{
	"if": true, "then": true, "else": true, "elif": true, "fi": true, "do": true, "done": true,
	"case": true, "esac": true, "while": true, "until": true, "for": true, "in": true,
	"function": true, "select": true, "time": true, "coproc": true,
}

// Quote makes a POSIX shell command line whose words are exactly argv, because SSH hands
// one string to the login shell. NUL bytes cannot be expressed.
func Quote(argv []string) string {
	words := make([]string, len(argv))
	for i, word := range argv {
		if word != "" && !reserved[word] && strings.IndexFunc(word, unsafe) < 0 {
			words[i] = word
			continue
		}
		words[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return strings.Join(words, " ")
}

// unsafe includes '=' because a leading a=b would be an assignment.
func unsafe(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return false
	}
	return !strings.ContainsRune("@+:,./_-", r)
}

// commandLine is Quote with everything refused that could not arrive as given.
func commandLine(argv []string) (string, error) {
	if len(argv) == 0 || argv[0] == "" {
		return "", errors.New("empty command")
	}
	for _, word := range argv {
		if strings.ContainsRune(word, 0) {
			return "", errors.New("an argument contains a NUL byte")
		}
	}
	line := Quote(argv)
	if len(line) > maxLine {
		return "", fmt.Errorf("command line is %d bytes, at most %d are possible: pass data over stdin", len(line), maxLine)
	}
	return line, nil
}
