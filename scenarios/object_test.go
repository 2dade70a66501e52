package scenarios

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// oneObject imitates kubectl for a cluster of one object, which is in the file $OBJECT.
const oneObject = `#!/bin/sh
set -e
test "$1" != --namespace || shift 2
case "$1 $*" in
"get "*"--output name"*) ! test -e "$OBJECT" || echo configmap/x ;;
"get "*) cat "$OBJECT" ;;
"delete "*) rm "$OBJECT" ;;
"replace "*) test -e "$OBJECT"; text=$(cat "$3"); printf '%s\n' "$text" >"$OBJECT" ;;
"create "*) test ! -e "$OBJECT"; cat "$3" >"$OBJECT" ;;
*) exit 2 ;;
esac
`

const wholeObject = "data:\n  mode: nftables\nmetadata:\n  name: x\n"

func TestObjectsBreakAndMend(t *testing.T) {
	for _, tt := range []struct{ name, how, broken, repaired, after string }{
		{"changed", `s/nftables/userspace/`, strings.Replace(wholeObject, "nftables", "userspace", 1), "", wholeObject},
		{"changed and repaired", `s/nftables/userspace/`, strings.Replace(wholeObject, "nftables", "userspace", 1), wholeObject, wholeObject},
		{"deleted", "", "", "", wholeObject},
		{"deleted and made again", "", "", "data: {}\n", "data: {}\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "object")
			write(t, file, strings.Replace(wholeObject, "  name: x\n", "  name: x\n  resourceVersion: \"7\"\n  uid: abc\n", 1))
			write(t, filepath.Join(dir, "kubectl"), oneObject)
			if err := os.Chmod(filepath.Join(dir, "kubectl"), 0o700); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
			t.Setenv("OBJECT", file)
			o := object{namespace: "default", name: "configmap/x", how: tt.how}
			target := Target{Driver: computer{dir}, ControlPlane: "c"}
			if err := o.make(t.Context(), target); err != nil {
				t.Fatal(err)
			}
			if has, _ := os.ReadFile(file); string(has) != tt.broken {
				t.Errorf("broken:\n%s", has)
			}
			if tt.repaired != "" {
				write(t, file, tt.repaired)
			}
			for range 2 {
				if err := o.undo(t.Context(), target); err != nil {
					t.Fatal(err)
				}
			}
			if has, _ := os.ReadFile(file); string(has) != tt.after {
				t.Errorf("afterwards:\n%s\nwant\n%s", has, tt.after)
			}
			if _, err := os.Stat(filepath.Join(dir, "kept")); !os.IsNotExist(err) {
				t.Errorf("something is kept: %v", err)
			}
		})
	}
}
