package machine

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/iso9660"
)

// writeNoCloud writes the files of the directory into a new disk at path, readable by the user alone, as cloud-init's NoCloud reads them:
// ISO 9660 with the label cidata. Rock Ridge keeps their names, which have characters that those of ISO 9660 cannot have.
func writeNoCloud(path, dir string) (err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	stage, err := os.MkdirTemp(filepath.Dir(path), "nocloud-") // 0700: the library takes what is in there, keys too, and removes it
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(stage)) }()
	if err := os.CopyFS(stage, os.DirFS(dir)); err != nil {
		return err
	}
	iso, err := iso9660.Create(file.New(f, false), 0, 0, 0, stage)
	if err != nil {
		return err
	}
	return iso.Finalize(iso9660.FinalizeOptions{RockRidge: true, VolumeIdentifier: "cidata"})
}
