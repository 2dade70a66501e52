package image

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"k8slab/lab/event"
)

const kindsFile = "kinds.yaml"

// FluxKinds are Flux' CustomResourceDefinitions, from the modules of its controllers.
func FluxKinds(ctx context.Context, events *event.Stream) ([]byte, error) {
	return kindsOf(ctx, events, "flux", sourceController, kustomizeController)
}

// MetalLBKinds are MetalLB's CustomResourceDefinitions, from its module.
func MetalLBKinds(ctx context.Context, events *event.Stream) ([]byte, error) {
	return kindsOf(ctx, events, "metallb", metalLB)
}

func kindsOf(ctx context.Context, events *event.Stream, name string, from ...component) ([]byte, error) {
	dir, err := CacheDir()
	if err != nil {
		return nil, err
	}
	inputs := []string{name + " kinds 1"}
	for _, c := range from {
		inputs = append(inputs, c.name, c.version(), string(c.sum()))
	}
	dir, err = cache{dir: dir, events: events}.get(ctx, name+"-kinds", inputs, func(dir string, _ *event.Step) error {
		var all []byte
		for _, c := range from {
			kinds, err := c.kinds(ctx, dir)
			if err != nil {
				return err
			}
			all = append(all, kinds...)
		}
		return os.WriteFile(filepath.Join(dir, kindsFile), all, 0o644)
	})
	if err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(dir, kindsFile))
}

// kinds are the definitions in the component's module, checked like those that it is built of.
func (c component) kinds(ctx context.Context, dir string) ([]byte, error) {
	work, err := os.MkdirTemp(dir, "work-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(work) }()
	if err := c.writeModule(ctx, work); err != nil {
		return nil, err
	}
	module, err := c.moduleDir(ctx, work)
	if err != nil {
		return nil, err
	}
	return documents(filepath.Join(module, "config", "crd", "bases"))
}

// documents are the YAML files of a directory as one text.
func documents(dir string) ([]byte, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no definitions of kinds: the module's layout has changed", dir)
	}
	var all bytes.Buffer
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&all, "---\n%s\n", bytes.TrimSpace(data))
	}
	return all.Bytes(), nil
}
