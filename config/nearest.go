package config

import (
	"fmt"
	"strings"
)

// Nearest is the name that a mistyped word most likely stands for: at most half
// of its letters differ. It is "" when there is none, or more than one.
func Nearest(word string, names []string) string {
	best, bestDistance := "", len(word)
	for _, name := range names {
		if len(word) > 2*len(name) {
			continue
		}
		switch dist := distance(strings.ToLower(word), name); {
		case 2*dist > len(name):
		case dist < bestDistance:
			best, bestDistance = name, dist
		case dist == bestDistance:
			best = ""
		}
	}
	return best
}

// DidYouMean is a question for a message about a mistyped word, "" when no
// name is near.
func DidYouMean(word string, names []string) string {
	if near := Nearest(word, names); near != "" {
		return "; did you mean " + quote(near) + "?"
	}
	return ""
}

// Unknown is the error for a word that names no such thing: what it may have
// been, and, after "the lab has" or the like, every name there is.
func Unknown(what, word, have string, names []string) error {
	all := strings.Join(names, ", ")
	if near := DidYouMean(word, names); near != "" {
		return fmt.Errorf("no %s %s%s %s%s %s", what, quote(word), near, strings.ToUpper(have[:1]), have[1:], all)
	}
	return fmt.Errorf("no %s %s; %s %s", what, quote(word), have, all)
}

// distance counts the bytes to insert, delete or replace to turn a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
