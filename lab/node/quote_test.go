package node

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

func ecdsaSigner(t *testing.T) ssh.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

var nasty = []string{
	"", " ", "plain", "two words", "'", "''", `"`, `\`, `\\`, "`id`", "$(id)", "$HOME", "${x}", "!!", "*", "?", "[a]",
	"~", "~root", "#", "a#b", ";", "&", "|", "<", ">", "(", ")", "{a,b}", "\n", "a\nb\n", "\t", "\r", "-n", "--", "=", "a=b",
	"if", "é", "日本", "\xff\xfe", "\x01\x7f", `'\''`, "a'b\"c$d`e\\f", "%s", "%1", strings.Repeat("'", 500),
}

func TestQuote(t *testing.T) {
	for want, argv := range map[string][]string{
		"":               {},
		"ls -l /etc":     {"ls", "-l", "/etc"},
		"echo ''":        {"echo", ""},
		"'if' x":         {"if", "x"},
		"'a=b'":          {"a=b"},
		`echo 'it'\''s'`: {"echo", "it's"},
	} {
		if got := Quote(argv); got != want {
			t.Errorf("%q: %s", argv, got)
		}
	}
	checkQuote(t, nasty)
	for _, word := range nasty {
		checkQuote(t, []string{word})
	}
}

func FuzzQuote(f *testing.F) {
	for _, word := range nasty {
		f.Add(word, "x")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if strings.ContainsRune(a+b, 0) || len(a)+len(b) > 20000 {
			t.Skip()
		}
		checkQuote(t, []string{a, b})
	})
}

// checkQuote lets a real shell take the line apart again.
func checkQuote(t *testing.T, argv []string) {
	t.Helper()
	line := Quote(append([]string{"printf", `%s\0`}, argv...))
	out, err := exec.Command("/bin/sh", "-c", line).Output()
	if err != nil {
		t.Fatalf("%q: %v", argv, err)
	}
	got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	if !slices.Equal(got, argv) {
		t.Errorf("%q became %q", argv, got)
	}
}

// As a command name nothing may be special either: these are programs that do not exist.
func TestQuoteCommandName(t *testing.T) {
	for _, name := range []string{"a=b", "if", "for", "done", "!", "{", "}", "#x", "~", "$x", "*"} {
		err := exec.Command("/bin/sh", "-c", Quote([]string{name})).Run()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 127 && exit.ExitCode() != 126 {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestNastyArgumentsArrive(t *testing.T) {
	_, n := setup(t, realShell)
	var out bytes.Buffer
	err := n.Run(within(t, 20*time.Second), Command{
		Argv: append([]string{"sh", "-c", `printf '%s\0' "$@"`, "sh"}, nasty...), Stdout: &out,
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Split(strings.TrimSuffix(out.String(), "\x00"), "\x00"); !slices.Equal(got, nasty) {
		t.Errorf("%q", got)
	}
}

func TestLastLines(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for text, want := range map[string]string{
		"":                               "",
		"\n \n":                          "",
		"one\n":                          "one",
		"one\n\n two \n":                 "one; two",
		"\x1b[31mred\x1b[0m\r\n":         "[31mred[0m",
		long:                             "…" + long[:400],
		long + "\nshort":                 "short",
		"lost\n" + long[:390] + "\nkept": long[:390] + "; kept",
	} {
		if got := lastLines(text); got != want {
			t.Errorf("%.20q: %q", text, got)
		}
	}
}
