package repair

import (
	"archive/tar"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"k8slab/config"
	"k8slab/lab/diagnose"
	"k8slab/lab/image"
	"k8slab/lab/inventory"
	"k8slab/lab/session"
	"k8slab/lab/symptom"
)

// filesBudget bounds the copying of files to one node.
const filesBudget = 5 * time.Minute

// originals has the contents of a node image's files. The error wraps fs.ErrNotExist where it does not have one.
type originals interface {
	Open(path, sha256 string) (content io.ReadCloser, size int64, err error)
}

// files puts back the files of each node that are not as its image made them, from the images in the cache, and has the components read
// them again. It comes before what nodes repair themselves, because that needs the programs. A machine without a list keeps its files.
func (r *repairRun) files(ctx context.Context) error {
	from, err := image.OpenOriginals()
	if err != nil {
		return err
	}
	return session.ForEachNode(r.Cluster.Members(), func(n config.Node) error {
		if r.Fact(n).Running() { // kubeadm is at work with them
			return nil
		}
		limited, cancel := r.Within(ctx, filesBudget)
		defer cancel()
		f := nodeFiles{repairRun: r, node: n, on: r.Nodes[n.Name], from: from}
		f.repair(limited)
		return context.Cause(ctx)
	})
}

// nodeFiles are the files of one node.
type nodeFiles struct {
	*repairRun
	node config.Node
	on   session.Node
	from originals
}

// comparisons is how often files are compared at most: a directory that was put back may show that the files in it are gone.
const comparisons = 3

// repair adds what it did to the findings, or why it could not. A node that does not answer, or has no list, is for others.
func (f nodeFiles) repair(ctx context.Context) {
	if _, err := f.on.Read(ctx, "true"); err != nil {
		if session.Status(err) >= 0 { // somebody answers, and runs nothing
			f.left(fmt.Sprintf("no command runs on it: %v", err), "make its machine anew: labctl repair cannot put files back without a shell there")
		}
		return
	}
	var done, lost []inventory.Difference
	for range comparisons {
		found, err := f.differences(ctx)
		if err != nil {
			f.left(err.Error(), "labctl ssh "+f.node.Name+" -- labnode files")
			break
		}
		var back []inventory.Difference
		back, lost = f.sorted(found)
		if f.DryRun || len(back) == 0 {
			done = append(done, back...)
			break
		}
		put, err := f.putBack(ctx, back)
		done = append(done, put...)
		if err != nil {
			f.left(fmt.Sprintf("its files could not be put back: %v", err),
				fmt.Sprintf("labctl ssh %s -- labnode files lists them; labctl ssh %[1]s -- df -h / shows the space", f.node.Name))
			break
		}
		if len(put) == 0 {
			break
		}
	}
	f.report(done, f.reload(ctx, done))
	f.lost(lost)
}

// differences asks the node's labnode. A labnode that does not run is put back first.
func (f nodeFiles) differences(ctx context.Context) ([]inventory.Difference, error) {
	found, err := f.ask(ctx)
	const unknownCommand = 2
	if err == nil || session.Status(err) == unknownCommand { // an older labnode knows no files
		return found, nil
	}
	mended, repairErr := f.labnode(ctx, err)
	if repairErr != nil || !mended {
		return nil, repairErr // a labnode that is well and fails is reported by whoever asks it next
	}
	if f.DryRun {
		return nil, nil
	}
	if err := f.RefreshFacts(ctx, f.node); err != nil {
		return nil, err
	}
	return f.ask(ctx)
}

func (f nodeFiles) ask(ctx context.Context) (found []inventory.Difference, err error) {
	text, err := f.on.Read(ctx, session.LabnodePath, "files", "-o", "json")
	if err == nil {
		err = json.Unmarshal([]byte(text), &found)
	}
	return found, err
}

// labnode puts the program back with which the node restores the others, and tells whether it did, or in a dry run would.
func (f nodeFiles) labnode(ctx context.Context, why error) (bool, error) {
	text, err := f.on.Read(ctx, "cat", inventory.Path)
	if err != nil {
		return false, nil // no list
	}
	list, err := inventory.Parse([]byte(text))
	i := slices.IndexFunc(list.Files, func(f inventory.File) bool { return f.Path == session.LabnodePath })
	if err != nil || i < 0 {
		return false, err
	}
	want := list.Files[i]
	is, err := f.on.Read(ctx, "sha256sum", want.Path)
	const cannotRun = 126
	if err == nil && strings.HasPrefix(is, want.SHA256) && session.Status(why) != cannotRun {
		return false, nil
	}
	content, _, err := f.from.Open(want.Path, want.SHA256)
	if err != nil {
		return false, fmt.Errorf("%s does not run (%w), and %w; next: labctl image build", want.Path, why, err)
	}
	defer content.Close()
	if !f.DryRun {
		err = f.on.Copy(ctx, want.Path, fs.FileMode(want.Mode), content)
	}
	if err == nil {
		evidence := fmt.Sprintf("%s does not run: %v", want.Path, why)
		f.repaired(Repaired{Node: f.node.Name, Symptom: string(symptom.FileChanged), Evidence: evidence},
			"put it back from the image", "put it back from the image")
	}
	return err == nil, err
}

// sorted are the files that can be put back, and those whose contents no image in the cache has.
func (f nodeFiles) sorted(found []inventory.Difference) (back, lost []inventory.Difference) {
	for _, d := range found {
		switch {
		case d.Kind == inventory.Extra: // whoever put it there may want it
		case d.Needs == "" || f.has(d):
			back = append(back, d)
		default:
			lost = append(lost, d)
		}
	}
	return back, lost
}

func (f nodeFiles) has(d inventory.Difference) bool {
	content, _, err := f.from.Open(d.Path, d.Needs)
	if err == nil {
		_ = content.Close()
	}
	return err == nil
}

// PutBack has a node put back those of the files that are not there as its list says, from the images in the cache. It is an error if one
// cannot be put back.
func PutBack(ctx context.Context, on session.Node, paths []string) error {
	from, err := image.OpenOriginals()
	if err != nil {
		return err
	}
	f := nodeFiles{on: on, from: from}
	found, err := f.ask(ctx)
	if err != nil {
		return err
	}
	back, lost := f.sorted(slices.DeleteFunc(found, func(d inventory.Difference) bool { return !slices.Contains(paths, d.Path) }))
	if len(lost) > 0 {
		return fmt.Errorf("no node image in the cache has %s; next: labctl image build", listed(lost))
	}
	_, err = f.putBack(ctx, back)
	return err
}

// putBack streams the contents into the node's labnode, which knows the rest of each file from its list. It returns what that put back.
func (f nodeFiles) putBack(ctx context.Context, files []inventory.Difference) (done []inventory.Difference, err error) {
	archive, into := io.Pipe()
	go func() { _ = into.CloseWithError(writeContents(into, f.from, files)) }()
	text, err := session.Feed(ctx, f.on, false, archive, session.LabnodePath, "files", "--restore", "-o", "json")
	_ = archive.Close() // ends the writer when the node has ended before
	if unread := json.Unmarshal([]byte(text), &done); err == nil {
		err = unread
	}
	return done, err
}

func writeContents(to io.Writer, from originals, files []inventory.Difference) error {
	archive := tar.NewWriter(to)
	for _, d := range files {
		if d.Needs == "" {
			continue
		}
		if err := writeContent(archive, from, d); err != nil {
			return fmt.Errorf("%s: %w", d.Path, err)
		}
	}
	return archive.Close()
}

func writeContent(archive *tar.Writer, from originals, d inventory.Difference) error {
	content, size, err := from.Open(d.Path, d.Needs)
	if err != nil {
		return err
	}
	defer content.Close()
	if err := archive.WriteHeader(&tar.Header{Name: d.Path, Mode: 0o600, Size: size}); err != nil {
		return err
	}
	_, err = io.Copy(archive, content)
	return err
}

// alwaysOn are units that run on every node, and that were perhaps stopped when they were masked. Of the image's other units some end the
// machine when they are started.
var alwaysOn = []string{"ssh", "systemd-networkd", "systemd-journald", "dbus"}

// reload has the components read what was put back, and says what it did. A component that does not start is for the repairs after this
// one, which know more of it.
func (f nodeFiles) reload(ctx context.Context, done []inventory.Difference) string {
	is := func(such func(inventory.Difference) bool) bool { return slices.ContainsFunc(done, such) }
	of := func(component string) bool {
		return is(func(d inventory.Difference) bool {
			return d.Component == component && !strings.Contains(path.Base(d.Path), "runc")
		})
	}
	var argv [][]string
	if is(func(d inventory.Difference) bool { return strings.Contains(d.Path, "/systemd/") }) {
		argv = append(argv, []string{"daemon-reload"})
	}
	if of("containerd") {
		argv = append(argv, []string{"restart", "containerd"})
	}
	if is(func(d inventory.Difference) bool {
		return d.Component == "kubelet" && strings.Contains(path.Base(d.Path), "kube")
	}) && f.Fact(f.node).Joined {
		argv = append(argv, []string{"restart", "kubelet"})
	}
	if of("keepalived") || of("libraries") {
		argv = append(argv, []string{"start", "keepalived"})
	}
	for _, unit := range alwaysOn {
		if is(func(d inventory.Difference) bool {
			return d.Kind == inventory.Masks && path.Base(d.Path) == unit+".service"
		}) {
			argv = append(argv, []string{"start", unit})
		}
	}
	said := ""
	for _, words := range argv {
		if !f.DryRun && session.Do(ctx, f.on, append([]string{"systemctl"}, words...)...) != nil {
			continue
		}
		said += ", systemctl " + strings.Join(words, " ")
	}
	return said
}

// report adds a finding for the files of each cause.
func (f nodeFiles) report(done []inventory.Difference, reloaded string) {
	var causes []symptom.ID
	files := map[symptom.ID][]inventory.Difference{}
	for _, d := range done {
		cause := f.cause(d)
		if files[cause] = append(files[cause], d); len(files[cause]) == 1 {
			causes = append(causes, cause)
		}
	}
	for _, cause := range causes {
		f.repaired(Repaired{Node: f.node.Name, Symptom: string(cause), Evidence: listed(files[cause])},
			"put back what the image has, and keep what is there as FILE.k8slab-saved"+reloaded,
			"put back what the image has, and kept what was there as FILE.k8slab-saved"+reloaded)
	}
}

// cause is what the diagnosis called the difference.
func (f nodeFiles) cause(d inventory.Difference) symptom.ID {
	for _, id := range diagnose.CausesOfFile(d) {
		if slices.ContainsFunc(f.before, func(b symptom.Finding) bool { return b.Node == f.node.Name && b.Symptom == id }) {
			return id
		}
	}
	return symptom.FileChanged
}

// listed names some of the files.
func listed(files []inventory.Difference) string {
	const shown = 4
	var all []string
	for _, d := range files[:min(len(files), shown)] {
		all = append(all, d.String())
	}
	if more := len(files) - shown; more > 0 {
		all = append(all, fmt.Sprintf("and %d more files", more))
	}
	return strings.Join(all, "; ")
}

// lost leaves the files that a component needs and no image in the cache has.
func (f nodeFiles) lost(files []inventory.Difference) {
	files = slices.DeleteFunc(files, func(d inventory.Difference) bool { return d.Component == "" })
	if len(files) > 0 {
		f.left(listed(files)+"; no node image in the cache has them", "labctl image build makes the image again; then labctl repair")
	}
}

func (f nodeFiles) left(evidence, next string) {
	f.add(Repaired{Node: f.node.Name, Symptom: string(symptom.FileChanged), Evidence: evidence, Left: next})
}
