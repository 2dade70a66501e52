package node

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// copyScript takes directory, file, mode, end mark and its length. Only content followed by the mark is complete: a broken connection ends
// stdin just like the end of the content. The temporary's name is known before it exists, so that an interruption at any moment removes it;
// noclobber makes sure it is a new file.
const copyScript = `set -eu
umask 022
mkdir -p -- "$1"
umask 077
temp=$1/.copy.$4
trap 'rm -f -- "$temp"' EXIT
trap 'exit 1' HUP INT TERM
set -C
cat >"$temp"
if [ "$(tail -c "$5" -- "$temp" | tr -d '\000')" != "$4" ]; then
	echo "content did not arrive completely" >&2
	exit 1
fi
truncate -s "-$5" -- "$temp"
chmod "$3" -- "$temp"
mv -fT -- "$temp" "$2"
trap - EXIT
`

// Copy writes a file on the node atomically: whoever looks sees the old file or the new one, and before it has its final mode only its
// owner can read it. Missing parent directories are made with mode 0755. A symlink at file is replaced, not followed.
func (n *Node) Copy(ctx context.Context, file string, mode fs.FileMode, content io.Reader) error {
	argv := []string{"copy", file}
	if !path.IsAbs(file) || path.Clean(file) != file || file == "/" {
		return n.commandError(argv, fmt.Errorf("not a clean absolute path"))
	}
	if mode&^fs.ModePerm != 0 {
		return n.commandError(argv, fmt.Errorf("mode %v is more than permissions", mode))
	}
	mark := rand.Text()
	line, err := commandLine([]string{
		"sh", "-c", copyScript, "sh", path.Dir(file), file,
		fmt.Sprintf("%04o", mode), mark, strconv.Itoa(len(mark)),
	})
	if err != nil {
		return n.commandError(argv, err)
	}
	return n.run(ctx, job{
		argv: argv, line: line, mutates: true,
		stdin: io.MultiReader(content, strings.NewReader(mark)),
	})
}
