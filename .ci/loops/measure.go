package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
)

// size is how large a package is, test files left out.
type size struct {
	path         string
	lines, files int
	loop         []string // the files of its largest loop; one file where there is none
}

// measure type-checks a package's files and finds the largest loop of references between them.
func measure(fset *token.FileSet, config *types.Config, path string, paths []string) (size, error) {
	s := size{path: path, files: len(paths)}
	var files []*ast.File
	for _, name := range paths {
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return s, err
		}
		s.lines += fset.File(file.FileStart).LineCount()
		files = append(files, file)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	pkg, err := config.Check(path, fset, files, info)
	if err != nil {
		return s, err
	}
	s.loop = largestLoop(references(fset, pkg, info))
	if len(s.loop) == 0 {
		s.loop = []string{filepath.Base(paths[0])} // nothing refers to anything
	}
	return s, nil
}

// references says for each file which others declare what it uses.
func references(fset *token.FileSet, pkg *types.Package, info *types.Info) map[string][]string {
	edges := map[string][]string{}
	for ident, object := range info.Uses {
		if object.Pkg() != pkg || !declared(pkg, object) {
			continue
		}
		from, to := base(fset, ident.Pos()), base(fset, object.Pos())
		if from != to && !slices.Contains(edges[from], to) {
			edges[from] = append(edges[from], to)
		}
	}
	return edges
}

// declared: is it declared at package level, or a method? A field's file is needed through its type anyway.
func declared(pkg *types.Package, object types.Object) bool {
	function, isFunction := object.(*types.Func)
	return object.Parent() == pkg.Scope() || isFunction && function.Signature().Recv() != nil
}

func base(fset *token.FileSet, pos token.Pos) string {
	return filepath.Base(fset.Position(pos).Filename)
}

// largestLoop is the largest strongly connected component, by Tarjan's algorithm, with its members in order.
func largestLoop(edges map[string][]string) []string {
	var largest, stack []string
	index, low, onStack := map[string]int{}, map[string]int{}, map[string]bool{}
	var visit func(string)
	visit = func(node string) {
		index[node] = len(index) + 1
		low[node] = index[node]
		stack, onStack[node] = append(stack, node), true
		for _, next := range edges[node] {
			if index[next] == 0 {
				visit(next)
				low[node] = min(low[node], low[next])
			} else if onStack[next] {
				low[node] = min(low[node], index[next])
			}
		}
		if low[node] != index[node] {
			return
		}
		at := slices.Index(stack, node)
		loop := slices.Clone(stack[at:])
		stack = stack[:at]
		for _, member := range loop {
			onStack[member] = false
		}
		if len(loop) > len(largest) {
			slices.Sort(loop)
			largest = loop
		}
	}
	for _, node := range slices.Sorted(maps.Keys(edges)) {
		if index[node] == 0 {
			visit(node)
		}
	}
	return largest
}
