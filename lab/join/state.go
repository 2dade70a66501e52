package join

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"k8slab/lab/atomicfile"
)

// What the engine keeps on a machine. Secrets are only below runDir, which is memory; what stays is redacted. All files are 0600.
const (
	runDir        = "/run/k8slab"
	requestFile   = runDir + "/join.json"    // removed as soon as the unit has read it
	kubeadmConfig = runDir + "/kubeadm.yaml" // removed when kubeadm has ended
	startLock     = runDir + "/join.lock"

	stateDir    = "/var/lib/k8slab/join"
	eventsFile  = stateDir + "/events.jsonl" // of the series of attempts, one event a line
	outcomeFile = stateDir + "/outcome.json" // of the series, when it has ended
	firstFile   = stateDir + "/first.json"   // of the series' first attempt, whatever later ones say
	kubeadmLog  = stateDir + "/kubeadm.log"  // all that kubeadm said in the series
	// unitProgram is the unit's own copy of a labnode that is not installed, removed with the unit. It is not in /run, where some systems
	// let no program run.
	unitProgram = stateDir + "/labnode"

	// joinedMark says that kubeadm finished here: only then is the machine a member.
	joinedMark = "/var/lib/k8slab/joined"
	// InitMark says that labctl has begun a kubeadm init here: what it left may be removed.
	InitMark = "/var/lib/k8slab/init"
)

// writePrivate writes a file that only root can read, whole or not at all, and on the disk when it returns.
func (m Machine) writePrivate(file string, data []byte) error {
	path := m.Path(file)
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := atomicfile.Write(path, atomicfile.Private, data); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
}

func (m Machine) writeJSON(file string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return m.writePrivate(file, append(data, '\n'))
}

func (m Machine) readJSON(file string, v any) error {
	data, err := os.ReadFile(m.Path(file))
	if err == nil {
		err = json.Unmarshal(data, v)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	return nil
}

// remove removes a file; one that is absent is fine.
func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// sweepSecrets removes what holds secrets and should be gone: an attempt that was killed leaves it.
func (m Machine) sweepSecrets() error {
	return errors.Join(remove(m.Path(kubeadmConfig)), remove(m.Path(requestFile)))
}

// beginSeries forgets the series of attempts before.
func (m Machine) beginSeries() error {
	var errs []error
	for _, file := range []string{eventsFile, outcomeFile, firstFile, kubeadmLog} {
		errs = append(errs, remove(m.Path(file)))
	}
	return errors.Join(errs...)
}

// markJoined says for good that kubeadm finished.
func (m Machine) markJoined() error { return m.writePrivate(joinedMark, nil) }

// joinedByHand tells whether somebody else's kubeadm finished here, which leaves no mark. The machines of a lab have only labctl's. Then it is
// what kubeadm leaves at its end, as far as nothing of it is broken now: it removes its credentials for the bootstrap when kubelet has its
// own, and a control plane's etcd is the last that it makes.
func (m Machine) joinedByHand() bool {
	if m.made() || m.begun() || m.Exists(bootstrapConf) {
		return false
	}
	left := 0
	for _, file := range []string{kubeletConf, clientCertificate, kubeletConfig} {
		if m.Exists(file) {
			left++
		}
	}
	if !m.controlPlane() && !m.Exists("/etc/kubernetes/controller-manager.conf") {
		return left > 1
	}
	manifest, _ := m.Read(apiManifest)
	return left > 1 && (ExternalEtcd(manifest) != nil || m.Exists(etcdManifest) || m.Exists(m.etcdData()))
}

// begun tells whether what is here may be of a kubeadm that labctl has begun and that has not finished. Credentials that are newer than the
// last event of labctl's join are somebody else's.
func (m Machine) begun() bool {
	if m.Exists(joinedMark) {
		return false
	}
	last, err := os.Stat(m.Path(eventsFile))
	if err != nil {
		return m.Exists(InitMark)
	}
	credentials, err := os.Stat(m.Path(kubeletConf))
	return m.Exists(InitMark) || err != nil || !credentials.ModTime().After(last.ModTime())
}

// dirty tells whether something of an init or a join is on the machine: what kubeadm's preflight would refuse, or the pod network's links,
// which a reset takes last. Certificates alone are leftovers only where the join does not bring them along.
func (m Machine) dirty(t Target) bool {
	if !t.ControlPlane && m.Exists(clusterCA) {
		return true
	}
	for _, file := range []string{kubeletConf, bootstrapConf, "/etc/kubernetes/admin.conf", m.etcdData()} {
		if m.Exists(file) {
			return true
		}
	}
	for _, link := range leftLinks {
		if m.Exists(linkDir + link) {
			return true
		}
	}
	return len(m.manifests()) > 0
}

// manifests are the static pods of the machine.
func (m Machine) manifests() []string {
	return slices.DeleteFunc(m.List(manifestsDir), func(name string) bool { return filepath.Ext(name) != ".yaml" || name[0] == '.' })
}

// localEtcd is where the machine's own member answers.
const localEtcd = "https://127.0.0.1:2379"
