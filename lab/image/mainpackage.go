package image

import (
	"context"
	"encoding/json"
	"fmt"
	gofmt "go/format"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/ast/astutil"
)

// A program that has everything built in names it in its main package's imports. A component that has main takes this package from its module
// and leaves imports out, which is how CoreDNS and others mean it to be: the libraries behind them are then not compiled.

// writeMain writes the component's main package to dir, which has its go.mod.
func (c component) writeMain(ctx context.Context, dir string) error {
	from, err := c.moduleDir(ctx, dir)
	if err != nil {
		return err
	}
	missing := slices.Clone(c.without)
	for _, name := range c.main {
		source, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return fmt.Errorf("%s %s has no such main package: %w", c.name, c.version(), bare(err))
		}
		text, left, err := mainWithout(source, c.without)
		if err != nil {
			return fmt.Errorf("%s of %s %s: %w", name, c.name, c.version(), err)
		}
		missing = slices.DeleteFunc(missing, func(p string) bool { return slices.Contains(left, p) })
		if err := os.WriteFile(filepath.Join(dir, path.Base(name)), text, 0o644); err != nil {
			return err
		}
	}
	if len(missing) > 0 && c.sum() != nil { // another version may not have them
		return fmt.Errorf("%s %s does not import %s: its layout has changed", c.name, c.version(), strings.Join(missing, ", "))
	}
	return nil
}

// moduleDir is where the component's first module is, after fetching it.
func (c component) moduleDir(ctx context.Context, dir string) (string, error) {
	out, err := c.goCommand(ctx, dir, nil, "mod", "download", "-json", c.modules[0].path)
	if err != nil {
		return "", err
	}
	var info struct{ Dir string }
	if err := json.Unmarshal([]byte(out), &info); err != nil {
		return "", fmt.Errorf("go mod download: %w", err)
	}
	return info.Dir, nil
}

// mainWithout makes a file one of package main and removes imports. It returns those that it found.
func mainWithout(source []byte, imports []string) (text []byte, found []string, err error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, nil, err
	}
	file.Name.Name = "main"
	for _, spec := range slices.Clone(file.Imports) {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil && slices.Contains(imports, p) {
			name := ""
			if spec.Name != nil {
				name = spec.Name.Name
			}
			astutil.DeleteNamedImport(files, file, name, p)
			found = append(found, p)
		}
	}
	var out strings.Builder
	err = gofmt.Node(&out, files, file)
	return []byte(out.String()), found, err
}
