// loops measures, in each package, the largest set of files that all need each other. Such files can only be understood together, so that a
// package that is one large loop is one large file. It fails when a loop or a package is larger than its limit in limits.go, and when a limit
// could be lower.
//
//	loops            checks every package of the module in the current directory
//	loops -print     also prints lines, files and largest loop of each package
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
)

func main() {
	printAll := flag.Bool("print", false, "print lines, files and largest loop of each package")
	flag.Parse()
	if err := run(*printAll); err != nil {
		fmt.Fprintln(os.Stderr, "loops:", err)
		os.Exit(1)
	}
}

func run(printAll bool) error {
	sizes, err := load("./...", "./.ci/loops", "./.ci/summary")
	if err != nil {
		return err
	}
	if printAll {
		fmt.Printf("%6s %6s %6s  %s\n", "lines", "files", "loop", "package")
		for _, s := range sizes {
			fmt.Printf("%6d %6d %6d  %s\n", s.lines, s.files, len(s.loop), s.path)
		}
	}
	return check(sizes, maxLoop, loopLimits, lineLimits)
}

// check compares packages with their limits. A loop's limit is exact, so that what became better stays so; lines only have an upper limit.
func check(sizes []size, most int, loops, lines map[string]int) error {
	var errs []error
	seen := map[string]bool{}
	for _, s := range sizes {
		seen[s.path] = true
		measured := len(s.loop)
		limit, exception := loops[s.path]
		switch {
		case !exception && measured > most:
			errs = append(errs, fmt.Errorf("%s: %d files need each other, at most %d may: %s", s.path, measured, most, strings.Join(s.loop, " ")))
		case exception && measured > limit:
			errs = append(errs, fmt.Errorf("%s: %d files need each other, at most %d may: %s", s.path, measured, limit, strings.Join(s.loop, " ")))
		case exception && measured <= most:
			errs = append(errs, fmt.Errorf("%s: only %d files need each other: remove its limit of %d from loopLimits", s.path, measured, limit))
		case exception && measured < limit:
			errs = append(errs, fmt.Errorf("%s: only %d files need each other: lower its limit of %d in loopLimits", s.path, measured, limit))
		}
		if limit, limited := lines[s.path]; limited && s.lines > limit {
			errs = append(errs, fmt.Errorf("%s: %d lines, at most %d may be", s.path, s.lines, limit))
		}
	}
	for _, limits := range []map[string]int{loops, lines} {
		for path := range limits {
			if !seen[path] {
				errs = append(errs, fmt.Errorf("%s has a limit, but there is no such package", path))
			}
		}
	}
	return errors.Join(errs...)
}
