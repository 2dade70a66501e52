package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8slab/lab/backup"
	"k8slab/lab/etcdadmin"
	"k8slab/lab/golden"
)

var sampleBackup = backup.Backup{
	ID: "20260102T150405-repair", Time: time.Date(2026, 1, 2, 15, 4, 5, 0, time.Local), Verb: "labctl repair", Who: "ann@desk", Cluster: "home", Path: "/state/backups/20260102T150405-repair",
	Nodes: []backup.Node{{Name: "cp1", File: "cp1.tar.gz", Size: 1 << 20}, {Name: "nas", Error: "no route"}},
	Etcd:  &etcdadmin.Snapshot{File: "/state/backups/20260102T150405-repair/etcd.db", Size: 20 << 20, Revision: 4711},
}

var sampleComparison = backup.Comparison{Backup: sampleBackup, Nodes: []backup.NodeChanges{
	{Node: "cp1", Changes: []backup.Change{
		{Path: "/etc/cni/net.d/05-x.conf", Kind: backup.New}, {Path: "/etc/containerd/config.toml", Kind: backup.Missing},
		{Path: "/var/lib/kubelet/config.yaml", Kind: backup.Changed, Detail: "content; mode 0666, was 0644"},
	}},
	{Node: "w1"},
}}

func TestUndoTexts(t *testing.T) {
	var list, differ, undo, all bytes.Buffer
	printBackups(&list, []backup.Backup{sampleBackup, {ID: "20260101T000000-undo", Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.Local), Verb: "undo", Who: "bob@lap"}})
	golden.Check(t, "undo-list.txt", list.String())
	unknown := sampleComparison
	unknown.Nodes = append(unknown.Nodes[:2:2], backup.NodeChanges{Node: "w2", Error: "no route to w2"})
	printComparison(&differ, unknown)
	golden.Check(t, "undo-show.txt", differ.String())
	wanted, left, err := choose(sampleComparison, false)
	if err != nil || len(wanted.Nodes) != 1 || len(left) != 1 {
		t.Errorf("%+v, %q, %v", wanted, left, err)
	}
	printUndo(&undo, wanted, left)
	golden.Check(t, "undo-restore.txt", undo.String())
	wanted, left, err = choose(sampleComparison, true)
	if printUndo(&all, wanted, left); err != nil || !strings.Contains(all.String(), "rm -d /etc/cni/net.d/05-x.conf") || len(left) > 0 {
		t.Errorf("%v: %s", err, all.String())
	}
	if _, _, err := choose(unknown, false); err == nil || !strings.Contains(err.Error(), "no route to w2; nothing was changed") {
		t.Errorf("got %v", err)
	}
}

// A lab without backups says so, and a list is one in JSON too.
func TestUndoList(t *testing.T) {
	alone(t)
	dir := filepath.Join(os.Getenv("XDG_STATE_HOME"), "k8slab", "small")
	if err := os.MkdirAll(filepath.Join(dir, "backups", sampleBackup.ID), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "id"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if status, stdout, stderr := labctl(t, "-c", small, "undo"); status != exitFailed || stdout != "" || !strings.Contains(stderr, sampleBackup.ID+" is damaged") {
		t.Errorf("status %d, %q, %q", status, stdout, stderr)
	}
	index, err := json.Marshal(sampleBackup)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "backups", sampleBackup.ID, "index.json"), index, 0o600); err != nil {
		t.Fatal(err)
	}
	var all []backup.Backup
	status, stdout, _ := labctl(t, "-c", small, "undo", "list", "-o", "json")
	if err := json.Unmarshal([]byte(stdout), &all); err != nil || status != 0 || len(all) != 1 || all[0].Path != filepath.Join(dir, "backups", sampleBackup.ID) {
		t.Errorf("status %d, %v, %s", status, err, stdout)
	}
	if status, stdout, _ := labctl(t, "__complete", "-c", small, "undo", "restore", ""); status != 0 || !strings.HasPrefix(stdout, sampleBackup.ID+"\n") {
		t.Errorf("status %d, %q", status, stdout)
	}
	if err := os.RemoveAll(filepath.Join(dir, "backups")); err != nil {
		t.Fatal(err)
	}
	if status, stdout, stderr := labctl(t, "-c", small, "undo", "list"); status != 0 || !strings.HasPrefix(stdout, "There is no backup.") || stderr != "" {
		t.Errorf("status %d, %q, %q", status, stdout, stderr)
	}
	if status, stdout, _ := labctl(t, "-c", small, "undo", "list", "-o", "json"); status != 0 || stdout != "[]\n" {
		t.Errorf("status %d, %q", status, stdout)
	}
}
