package image

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"k8slab/lab/command"
)

// A Debian tree has files of many owners, and making it mounts file systems and changes the root directory. That needs root, or a user
// namespace in which the user is root and has the sub-IDs of subuid(5).

// asRoot is how a user runs a command as root of such a namespace. unshare(1) has --map-auto since util-linux 2.38 (Debian 12, Ubuntu
// 24.04).
var asRoot = []string{"unshare", "--user", "--map-root-user", "--map-auto", "--mount", "--"}

// AsRoot wraps argv so that it runs as root of a user namespace. The error says why there can be none.
func AsRoot(ctx context.Context, argv []string) ([]string, error) {
	if _, err := command.Run(ctx, append(asRoot[:len(asRoot):len(asRoot)], "true")...); err != nil {
		return nil, fmt.Errorf("no user namespace: %w", err)
	}
	return append(asRoot[:len(asRoot):len(asRoot)], argv...), nil
}

// needRoot refuses to build as another user: the files would have the wrong owners.
func needRoot(ctx context.Context, cacheDir string) error {
	if os.Geteuid() == 0 {
		return nil
	}
	_, err := AsRoot(ctx, nil)
	if err == nil {
		err = fmt.Errorf("this is user %d", os.Geteuid())
	}
	return fmt.Errorf("building images needs root: %w; next, once: sudo env XDG_CACHE_HOME=%s labctl image build --disk", err, filepath.Dir(cacheDir))
}
