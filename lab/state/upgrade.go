package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"k8slab/config"
)

// Upgrade is an upgrade of the cluster that has begun.
type Upgrade struct {
	From string   `json:"from"` // versions of Kubernetes
	To   string   `json:"to"`
	Done []string `json:"done"` // steps that need not be done again
}

func (u Upgrade) String() string {
	last := "nothing is done"
	if len(u.Done) > 0 {
		last = "the last that is done: " + u.Done[len(u.Done)-1]
	}
	return fmt.Sprintf("from %s to %s; %s", u.From, u.To, last)
}

// upgradeFile is there while an upgrade has begun and not ended.
const upgradeFile = "upgrade.json"

// Upgrading is the upgrade that has begun and not ended, nil for none.
func (d Dir) Upgrading() (*Upgrade, error) {
	data, err := os.ReadFile(d.Path(upgradeFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, unreadable(d.dir, err)
	}
	var u Upgrade
	if err := json.Unmarshal(data, &u); err != nil {
		return nil, fmt.Errorf("%s: %w", d.Path(upgradeFile), err)
	}
	return &u, nil
}

// Note writes down how far the upgrade is.
func (d Dir) Note(u Upgrade) error {
	data, err := json.Marshal(u)
	if err != nil {
		return err
	}
	return d.Write(upgradeFile, data)
}

// Upgraded ends the upgrade: the lab is made with that version now, from that source.
func (d Dir) Upgraded(to config.Kubernetes) error {
	made, err := d.Made()
	if err != nil {
		return err
	}
	if made != nil {
		made.Kubernetes.Version, made.Kubernetes.Source = to.Version, to.Source
		if err := d.writeMade(made); err != nil {
			return err
		}
	}
	return os.Remove(d.Path(upgradeFile))
}
