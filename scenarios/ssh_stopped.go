package scenarios

import (
	"context"
	"fmt"
	"strings"

	"k8slab/lab/symptom"
)

var sshStopped = Fault{
	Name:    "ssh-stopped",
	Story:   "an update of OpenSSH stopped sshd and did not start it again: the node works, and nobody gets in (hestiacp#370)",
	Roles:   workers,
	Symptom: symptom.NodeUnreachable,
	Applies: anotherControlPlane,
	Inject:  on("systemctl", "stop", "ssh"),
	Effect: func(ctx context.Context, t Target) error {
		switch said, err := t.sshPort(ctx); {
		case err != nil || said == "closed":
			return err
		case said == "open":
			return absent("sshd of %s answers", t.Node)
		default:
			return fmt.Errorf("%s says %q of the port of %s", t.ControlPlane, said, t.Node)
		}
	},
	Recover: [][]string{{"power", "off", Node}, {"up"}},
	May:     []Change{Boot},
	Restore: func(ctx context.Context, t Target) error {
		said, err := t.sshPort(ctx)
		if err != nil || said != "closed" {
			return err
		}
		for _, args := range [][]string{{"power", "off", t.Node}, {"up"}} {
			if _, err := t.Labctl(ctx, args...); err != nil {
				return err
			}
		}
		return nil
	},
}

// sshPort tells whether anything listens where the node's sshd should, "open" or "closed", as another node sees it.
func (t Target) sshPort(ctx context.Context) (string, error) {
	out, err := t.Run(ctx, t.ControlPlane, "bash", "-c",
		`timeout 2 bash -c 'exec 3<>/dev/tcp/"$1"/22' bash "$1" 2>/dev/null && echo open || echo closed`, "bash", t.Address)
	return strings.TrimSpace(out), err
}
