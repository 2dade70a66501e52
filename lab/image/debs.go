package image

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8slab/lab/command"
	"k8slab/lab/event"
)

// bundlePackages are the Debian packages that a stock image may lack.
func bundlePackages() []string {
	return slices.DeleteFunc(slices.Clone(debianPackages), func(p string) bool { return slices.Contains(stockPackages, p) })
}

// debs returns a directory with those packages and all that they depend on, down to the C library, as a repository for apt. Which of them
// an image lacks, its own apt decides.
func (c cache) debs(ctx context.Context) (string, error) {
	packages := bundlePackages()
	return c.get(ctx, "debs", append([]string{"debs 1"}, debianInputs(packages)...), func(dir string, step *event.Step) error {
		tree := filepath.Join(dir, "tree")
		if err := bootstrap(ctx, tree, "extract", packages, step, "--skip=cleanup/apt/cache"); err != nil {
			return err
		}
		found, err := filepath.Glob(filepath.Join(tree, "var/cache/apt/archives/*.deb"))
		if err != nil {
			return err
		}
		if len(found) < len(packages) {
			return fmt.Errorf("mmdebstrap left %d packages in its cache, expected %d and what they depend on", len(found), len(packages))
		}
		for _, path := range found {
			if err := os.Rename(path, filepath.Join(dir, filepath.Base(path))); err != nil {
				return err
			}
		}
		if err := os.RemoveAll(tree); err != nil {
			return err
		}
		return writePackages(ctx, dir)
	})
}

// writePackages writes the index by which apt finds the packages in dir (deb-control(5), and "Packages" in the repository's format).
func writePackages(ctx context.Context, dir string) error {
	found, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err != nil {
		return err
	}
	var index strings.Builder
	for _, path := range found {
		control, err := command.Run(ctx, "dpkg-deb", "--field", path)
		if err != nil {
			return err
		}
		sum, err := fileHash(path)
		if err != nil {
			return err
		}
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		fmt.Fprintf(&index, "%s\nFilename: ./%s\nSize: %d\nSHA256: %s\n\n", strings.TrimRight(control, "\n"), filepath.Base(path), info.Size(), sum)
	}
	return os.WriteFile(filepath.Join(dir, "Packages"), []byte(index.String()), 0o644)
}
