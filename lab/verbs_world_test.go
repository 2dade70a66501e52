package lab

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8slab/config"
	"k8slab/lab/addon"
	"k8slab/lab/bringup"
	"k8slab/lab/etcd"
	"k8slab/lab/etcdadmin"
	"k8slab/lab/health"
	"k8slab/lab/image"
	"k8slab/lab/labtest"
	"k8slab/lab/machine"
	"k8slab/lab/provision"
	"k8slab/lab/repair"
	"k8slab/lab/state"
)

// A join command has a token that is signed, the pin of the CA and, for a control plane, the key to certificates that were just uploaded. It
// stays good after an up.
func TestJoinCommandInMemory(t *testing.T) {
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		w.up()
		w.clean()
		worker, err := w.lab.JoinCommand(t.Context(), false)
		form := regexp.MustCompile(`^kubeadm join \S+:6443 --token [a-z0-9]{6}\.[a-z0-9]{16} --discovery-token-ca-cert-hash sha256:[0-9a-f]{64}`)
		if err != nil || !form.MatchString(worker.Command) || strings.Contains(worker.Command, "--control-plane") || time.Until(worker.Expires) < 29*time.Minute {
			t.Errorf("%+v, %v", worker, err)
		}
		w.change(func() { w.box("cp1").noKubeadm = true }) // another control plane uploads
		cp, err := w.lab.JoinCommand(t.Context(), true)
		if err != nil || !form.MatchString(cp.Command) || !strings.Contains(cp.Command, "--control-plane --certificate-key "+w.uploaded) || w.uploaded == "" || !cp.ControlPlane {
			t.Errorf("%+v, %v, uploaded with %q", cp, err, w.uploaded)
		}
		w.wantOrder("cp2: write /run/k8slab/kubeadm.yaml", "cp2: kubeadm init phase upload-certs", "cp2: rm -f /run/k8slab/kubeadm.yaml")
		w.change(func() {
			for _, name := range []string{"cp2", "cp3"} {
				w.box(name).noKubeadm = true
			}
		})
		if _, err := w.lab.JoinCommand(t.Context(), true); err == nil || !strings.Contains(err.Error(), "kubeadm is not found on cp1, cp2, cp3") {
			t.Errorf("nobody has kubeadm: %v", err)
		}
		w.up()
		if left := slices.Compact(w.tokens()); !slices.Contains(left, "made by labctl join-command") {
			t.Errorf("up deleted the commands' tokens: %q", left)
		}
	})
}

// Looking at etcd's members and foreseeing what a clean would do changes nothing; while another labctl is at work, nothing is foreseen to go.
func TestEtcdVerbs(t *testing.T) {
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		w.up()
		w.clean()
		st, err := w.lab.EtcdMembers(t.Context())
		if err != nil || !st.Healthy || !st.Quorum || len(st.Members) != 3 || st.Members[1].Node != "cp2" || st.Members[0].Role != "leader" {
			t.Errorf("%+v, %v", st, err)
		}
		w.change(func() { w.addMember("stranger", true); w.addMember("cp3", true) })
		if st, err := w.lab.EtcdMembers(t.Context()); err != nil || st.Healthy || st.Members[3].Role != "learner" || st.Members[3].Node != "" {
			t.Errorf("with learners: %+v, %v", st, err)
		}
		actions := func() (all []etcd.Action) {
			verdicts, err := w.lab.CleanLearners(t.Context(), true)
			if err != nil {
				t.Error(err)
			}
			for _, v := range verdicts {
				if v.Removed {
					t.Errorf("a dry run removed %+v", v)
				}
				all = append(all, v.Action)
			}
			return all
		}
		if got := actions(); !slices.Equal(got, []etcd.Action{etcd.Keep, etcd.Keep, etcd.Keep, etcd.Remove, etcd.Remove}) {
			t.Errorf("at rest: %q", got)
		}
		release, err := state.Lock(w.lab.Name(), "labctl join cp3")
		if err != nil {
			t.Fatal(err)
		}
		if got := actions(); !slices.Equal(got, []etcd.Action{etcd.Keep, etcd.Keep, etcd.Keep, etcd.Remove, etcd.Wait}) {
			t.Errorf("while another labctl is at work: %q", got)
		}
		release()
		if len(w.lab.Changes()) > 0 || len(w.members) != 5 {
			t.Errorf("changed %q", w.lab.Changes())
		}
		verdicts, err := w.lab.CleanLearners(t.Context(), false)
		if removed := slices.DeleteFunc(verdicts, func(v etcdadmin.Verdict) bool { return !v.Removed }); err != nil || len(removed) != 2 || len(w.members) != 3 {
			t.Errorf("%+v, %v, members %+v", removed, err, w.members)
		}
	})
}

func TestSnapshotSaveInMemory(t *testing.T) {
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		w.up()
		w.change(func() { w.box("cp2").state, w.box("cp3").state = machine.Off, machine.Off }) // without a quorum
		file := filepath.Join(t.TempDir(), "etcd.db")
		saved, err := w.lab.SnapshotSave(t.Context(), file)
		info, statErr := os.Stat(file)
		if err != nil || statErr != nil || saved.File != file || saved.Size != info.Size() || !strings.HasPrefix(saved.Checksum, "sha256:") || info.Mode().Perm() != 0o600 {
			t.Errorf("%+v, %v, %v", saved, err, statErr)
		}
		w.change(func() { w.box("cp1").silent = true })
		other := filepath.Join(filepath.Dir(file), "other.db")
		if _, err := w.lab.SnapshotSave(t.Context(), other); err == nil {
			t.Error("saved from nobody")
		}
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), "*")); len(left) != 1 {
			t.Errorf("left %q", left)
		}
	})
}

// A machine is paused, goes on, and is turned off; a virtual one's clock is set when it goes on. Up brings back what is not running.
func TestPowerVerbs(t *testing.T) {
	for _, edit := range []func(*config.Cluster){nil, ofVMs} {
		inWorld(t, labtest.Small, edit, func(t *testing.T, w *world) {
			w.up()
			is := func(err error, want machine.State) {
				t.Helper()
				if got := w.box("w1").state; err != nil || got != want {
					t.Errorf("%s, %v, want %s", got, err, want)
				}
			}
			is(w.lab.Pause(t.Context(), "w1"), machine.Paused)
			is(w.lab.Resume(t.Context(), "w1"), machine.Running)
			if set := w.box("w1").clock != ""; set != (edit != nil) {
				t.Errorf("the clock was set: %v", set)
			}
			is(w.lab.PowerOff(t.Context(), "w1"), machine.Off)
			w.up()
			is(w.lab.Pause(t.Context(), "w1"), machine.Paused)
			w.change(func() { w.box("w1").clock = "" })
			w.up()
			is(nil, machine.Running)
			if set := w.box("w1").clock != ""; set != (edit != nil) {
				t.Errorf("up set the clock: %v", set)
			}
			w.clean()
			for _, err := range []error{w.lab.Pause(t.Context(), "w7"), w.lab.PowerOff(t.Context(), ""), w.lab.Resume(t.Context(), "cp9")} {
				if err == nil || !strings.Contains(err.Error(), "he lab has cp1, w1") || len(w.lab.Changes()) > 0 {
					t.Errorf("%v, changed %q", err, w.lab.Changes())
				}
			}
		})
	}
}

// archiveOf is an archive of images as docker saves them; the world's containerd reads no more of it than their names.
func archiveOf(t *testing.T, names ...string) *image.Archive {
	t.Helper()
	var out bytes.Buffer
	add := func(name string, v any) {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		w := tar.NewWriter(&out)
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(text)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	add("manifest.json", []object{{"Config": "config.json", "RepoTags": names, "Layers": []string{}}})
	add("config.json", object{"os": "linux", "architecture": "amd64"})
	out.Write(make([]byte, 1024))
	a, err := image.OpenArchive(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Images go to every machine that runs; the others are told of. One that containerd does not have afterwards is an error.
func TestLoadImagesInMemory(t *testing.T) {
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		w.up()
		const full = "docker.io/library/app:1"
		a := archiveOf(t, "app:1")
		if !slices.Equal(a.Names, []string{full}) {
			t.Fatalf("the archive has %q", a.Names)
		}
		has := func(name string) []string { return w.box(name).images }
		w.change(func() {
			w.box("w2").state = machine.Off
			for _, b := range w.machines {
				b.imports = []string{full}
			}
			w.box("cp1").imports = nil
		})
		loaded, err := w.lab.LoadImages(t.Context(), a, nil)
		if err == nil || !strings.Contains(err.Error(), "cp1: after the import containerd does not have "+full) || len(loaded) != 5 {
			t.Errorf("%+v, %v", loaded, err)
		}
		for _, l := range loaded {
			want := map[string]string{"cp1": "after the import", "w2": "its machine is off"}[l.Node]
			if !strings.Contains(l.Left, want) || (want == "") != slices.Equal(l.Images, []string{full}) || (want == "") != slices.Equal(has(l.Node), []string{full}) {
				t.Errorf("%+v, and the node has %q", l, has(l.Node))
			}
		}
		w.clean()
		for name, want := range map[string]string{"w2": "its machine is off; next: labctl up", "w7": "w7"} {
			if _, err := w.lab.LoadImages(t.Context(), a, []string{"cp1", name}); err == nil || !strings.Contains(err.Error(), want) || len(w.lab.Changes()) > 0 {
				t.Errorf("%s: %v, changed %q", name, err, w.lab.Changes())
			}
		}
		w.change(func() {
			for _, b := range w.machines {
				b.state = machine.Off
			}
		})
		if _, err := w.lab.LoadImages(t.Context(), a, nil); err == nil || !strings.Contains(err.Error(), "no machine of the lab runs") {
			t.Errorf("nobody runs: %v", err)
		}
	})
}

// What was loaded into all nodes comes back to a node that has lost it, and reaches one that joins later; the rest is not kept.
func TestLoadedImagesAreKept(t *testing.T) {
	inWorld(t, labtest.Small, nil, func(t *testing.T, w *world) {
		w.up()
		const all, one = "docker.io/library/app:1", "docker.io/library/one:1"
		load := func(ref string, names ...string) {
			t.Helper()
			w.change(func() {
				for _, b := range w.machines {
					b.imports = []string{ref}
				}
			})
			if _, err := w.lab.LoadImages(t.Context(), archiveOf(t, ref), names); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.lab.Closed().UsesImage("image", "/cache/node-1"); err != nil { // as every real lab has
			t.Fatal(err)
		}
		load(one, "w1")
		load(all)
		w.change(func() { w.box("w1").images = nil })
		if kept, err := provision.KeptImages(w.lab.Closed()); err != nil || len(kept) != 1 || kept[all] == "" {
			t.Errorf("%v, %v", kept, err)
		}
		if _, err := w.lab.Repair(t.Context(), false, repair.Restart); err != nil {
			t.Fatal(err)
		}
		if got := w.box("w1").images; !slices.Equal(got, []string{all}) {
			t.Errorf("w1 has %q", got)
		}
		w.change(func() { w.box("w1").images = nil })
		if err := w.lab.Rejoin(t.Context(), "w1"); err != nil {
			t.Fatal(err)
		}
		if got := w.box("w1").images; !slices.Equal(got, []string{all}) {
			t.Errorf("w1 has %q after it joined anew", got)
		}
	})
}

// kubelet looks for an image by its full name: what containerd has by a short one gets the other too.
func TestLoadImagesOfShortNames(t *testing.T) {
	inWorld(t, labtest.Small, nil, func(t *testing.T, w *world) {
		w.up()
		a := archiveOf(t, "app:1")
		a.Renamed = map[string]string{"app:1": "docker.io/library/app:1", "other:1": "docker.io/library/other:1"}
		w.change(func() { w.box("w1").imports = []string{"app:1"} })
		loaded, err := w.lab.LoadImages(t.Context(), a, []string{"w1"})
		if err != nil || len(loaded) != 1 || !slices.Equal(w.box("w1").images, []string{"app:1", "docker.io/library/app:1"}) {
			t.Errorf("%+v, %v, has %q", loaded, err, w.box("w1").images)
		}
	})
}

// imagesEverywhere has all nodes have the images, so that none has to be built.
func (w *world) imagesEverywhere(addons ...addon.Addon) {
	for _, b := range w.machines {
		for _, ref := range addon.ImagesOf(addons) {
			b.images = append(b.images, "docker.io/"+ref)
		}
	}
}

// An add-on is installed with what it needs, once, and is ready when its pods are.
func TestInstallAddonsInMemory(t *testing.T) {
	inWorld(t, labtest.Small, nil, func(t *testing.T, w *world) {
		w.up()
		w.clean()
		addons, err := addon.Resolve([]string{"node-exporter", "local-path"})
		if err != nil {
			t.Fatal(err)
		}
		w.change(func() { w.imagesEverywhere(addons...) })
		if err := w.lab.InstallAddons(t.Context(), []string{"node-exporter", "local-path"}); err != nil {
			t.Fatal(err)
		}
		all, err := w.lab.Addons(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range all {
			in := a.Name == "node-exporter" || a.Name == "local-path"
			if a.Installed != in || a.Wanted || in && (a.Ready == 0 || a.Ready != a.Want) {
				t.Errorf("%+v", a)
			}
		}
		before := len(w.lab.Changes())
		if err := w.lab.InstallAddons(t.Context(), []string{"local-path"}); err != nil || len(w.lab.Changes()) > before {
			t.Errorf("again: %v, changed %q", err, w.lab.Changes()[before:])
		}
		// A workload that does not come is an error that names it.
		w.change(func() { w.stuck = map[string]bool{"local-path-provisioner": true} })
		err = w.lab.InstallAddons(t.Context(), []string{"local-path"})
		if err == nil || !strings.Contains(err.Error(), "deployment local-path-storage/local-path-provisioner: 0 of 1 pods ready") || !strings.Contains(err.Error(), "labctl kubectl get pods") {
			t.Errorf("its pod does not start: %v", err)
		}
		if err := w.lab.InstallAddons(t.Context(), []string{"proxy"}); err == nil || !strings.Contains(err.Error(), "network.proxy, and cluster.yaml has none") {
			t.Errorf("pods are told of no proxy: %v", err)
		}
		if _, err := w.lab.GitOps(t.Context()); err == nil || !strings.Contains(err.Error(), "no Git repository") {
			t.Errorf("git is not installed: %v", err)
		}
	})
}

// A node that lacks an add-on's image needs one that is built, of a labnode that is given.
func TestAddonImagesAreBuilt(t *testing.T) {
	inWorld(t, labtest.Small, nil, func(t *testing.T, w *world) {
		w.up()
		w.clean()
		err := w.lab.InstallAddons(t.Context(), []string{"node-exporter"})
		if err == nil || !strings.Contains(err.Error(), "no labnode is given") || w.count("kube PATCH") > 0 {
			t.Errorf("%v, changed %q", err, w.lab.Changes())
		}
	})
}

// Looks at a lab wait for nobody, neither for each other nor for a labctl at work; a second one that would change it is refused.
func TestTwoSessionsAtOnce(t *testing.T) {
	inWorld(t, labtest.Three, nil, func(t *testing.T, w *world) {
		w.up()
		second, err := New(w.lab.described, Options{})
		if err != nil {
			t.Fatal(err)
		}
		w.attach(second)
		release, err := state.Lock(w.lab.Name(), "labctl rejoin w1")
		if err != nil {
			t.Fatal(err)
		}
		var locked *state.LockedError
		if err := second.Up(t.Context(), bringup.StageProof); !errors.As(err, &locked) || !strings.Contains(err.Error(), "labctl rejoin w1") {
			t.Errorf("a second up: %v", err)
		}
		release()
		var wg sync.WaitGroup
		for _, l := range []*Lab{w.lab, second} {
			wg.Go(func() { _, _ = l.Status(t.Context()) })
			wg.Go(func() { _, _ = l.EtcdMembers(t.Context()) })
			wg.Go(func() { _, _ = l.Traces(t.Context(), "w1") })
			wg.Go(func() { _, _ = l.Diagnose(t.Context(), health.DiagnoseOptions{Nodes: []string{"w1"}}) })
			wg.Go(func() {
				conn, err := l.Dial(t.Context(), "tcp", "10.30.0.11:8080")
				if err == nil {
					_ = conn.Close()
				}
			})
		}
		wg.Go(func() {
			if err := w.lab.Rejoin(t.Context(), "w1"); err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
		if len(second.Changes()) > 0 {
			t.Errorf("looking changed %q", second.Changes())
		}
		w.wantHealthy()
		second.Close()
	})
}
