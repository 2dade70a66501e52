package event

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
)

var escapeSequence = regexp.MustCompile(`\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)`)

// OneLine makes a text safe to show: without escape sequences, and with blanks
// and question marks for whatever else could move the cursor or reorder text.
func OneLine(s string) string {
	s = escapeSequence.ReplaceAllString(s, "")
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return '?'
		}
		return r
	}, s)
}

// lines splits a detail and makes each line safe to show.
func lines(s string) []string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	all := strings.Split(strings.Trim(s, "\n"), "\n")
	for i, line := range all {
		all[i] = strings.TrimRight(OneLine(line), " ")
	}
	return all
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return strings.TrimSpace(s)
}

// took is a finished duration: tenths matter only while it is short.
func took(d time.Duration) string {
	if d < 9950*time.Millisecond {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return clock(d.Round(time.Second))
}

// clock is a running duration in whole seconds.
func clock(d time.Duration) string {
	s := int(d / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	}
	return fmt.Sprintf("%dh%02dm", s/3600, s/60%60)
}

// limitText is a limit; those are mostly round, and shorter without the zeros.
func limitText(d time.Duration) string {
	if d < time.Minute && d%time.Second != 0 {
		return d.String()
	}
	return strings.TrimSuffix(strings.TrimSuffix(clock(d), "00s"), "00m")
}

// running is elapsed/limit, or elapsed alone without a limit.
func running(elapsed, limit time.Duration) string {
	if limit <= 0 {
		return clock(elapsed)
	}
	return clock(elapsed) + "/" + limitText(limit)
}

// Columns is how many terminal cells a text takes.
func Columns(s string) int {
	n := 0
	for _, r := range s {
		n += runeColumns(r)
	}
	return n
}

func runeColumns(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	// The East Asian wide blocks, and the pictographs.
	case r >= 0x1100 && r <= 0x115f, r >= 0x2e80 && r <= 0xa4cf, r >= 0xac00 && r <= 0xd7a3,
		r >= 0xf900 && r <= 0xfaff, r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60,
		r >= 0xffe0 && r <= 0xffe6, r >= 0x1f300 && r <= 0x1faff, r >= 0x20000 && r <= 0x3fffd:
		return 2
	}
	return 1
}

// cut shortens a text to a width, and marks that something is missing.
func cut(s string, width int) string {
	if Columns(s) <= width {
		return s
	}
	n := 1
	for i, r := range s {
		if n += runeColumns(r); n > width {
			return s[:i] + "…"
		}
	}
	return s
}

func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-Columns(s)))
}
