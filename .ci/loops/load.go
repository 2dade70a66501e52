package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// listed is what go list says about a package.
type listed struct {
	Dir, ImportPath, Export string
	GoFiles                 []string
	DepOnly                 bool
}

// load measures the packages that the patterns name. Their imports come from the compiler's export data, which go list builds where needed.
func load(patterns ...string) ([]size, error) {
	command := exec.Command("go", append([]string{"list", "-export", "-deps", "-json=Dir,ImportPath,Export,GoFiles,DepOnly"}, patterns...)...)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var packages []listed
	exports := map[string]string{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("read go list's answer: %w", err)
		}
		exports[p.ImportPath] = p.Export
		if !p.DepOnly && len(p.GoFiles) > 0 {
			packages = append(packages, p)
		}
	}
	return measureAll(packages, exports)
}

func measureAll(packages []listed, exports map[string]string) ([]size, error) {
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	var sizes []size
	for _, p := range packages {
		var paths []string
		for _, name := range p.GoFiles {
			paths = append(paths, filepath.Join(p.Dir, name))
		}
		s, err := measure(fset, &types.Config{Importer: imports}, p.ImportPath, paths)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.ImportPath, err)
		}
		sizes = append(sizes, s)
	}
	return sizes, nil
}
