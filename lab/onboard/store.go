package onboard

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"

	"k8slab/lab/atomicfile"
)

// Store keeps the states of one target's onboardings, in a directory that is the user's alone:
//
//	NODE/state.json                        of the onboarding under way
//	NODE/before-rollback-TIME.json         what that was before it was rolled back
//	NODE/archive/NUMBER-completed.json     finished ones, the newest with the highest number
//	NODE/archive/NUMBER-rolled_back.json
//	NODE/lock                              held by the process at work
//
// Nothing is ever deleted.
type Store struct {
	target Target
	dir    string
}

const (
	stateFile  = "state.json"
	archiveDir = "archive"
	lockFile   = "lock"
)

// OpenStore returns the store of a target's states below dir, which is one cluster's. It touches nothing.
func OpenStore(dir string, t Target) (*Store, error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	return &Store{target: t, dir: filepath.Join(dir, t.Node)}, nil
}

func (s *Store) path(elem ...string) string {
	return filepath.Join(append([]string{s.dir}, elem...)...)
}

// current is the state of the onboarding that is under way, or was when its process ended; nil without one.
func (s *Store) current() (*State, error) { return s.load(s.path(stateFile)) }

// load reads a state of the target; nil if there is no such file, and a *RefusedError for whatever must not be acted on.
func (s *Store) load(path string) (*State, error) {
	data, err := readPrivate(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var st *State
	if err == nil {
		st, err = parse(data)
	}
	if err == nil {
		err = s.target.check(st)
	}
	if bad, ok := errors.AsType[*RefusedError](err); ok {
		bad.Path = path
	}
	if err != nil {
		return nil, err
	}
	return st, nil
}

// readPrivate reads a file that nobody but the user can have written.
func readPrivate(path string) ([]byte, error) {
	// Without O_NONBLOCK, opening a planted fifo would wait for its writer.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, refuse(nextAside, "it is a symbolic link")
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	switch mode := info.Mode(); {
	case !mode.IsRegular():
		return nil, refuse(nextAside, "it is not a regular file")
	case !ours(info):
		return nil, refuse(nextAside, "it belongs to another user")
	case mode.Perm()&0o077 != 0:
		return nil, refuse(nextMode, "others can read or write it: its mode is %#o", mode.Perm())
	}
	return io.ReadAll(io.LimitReader(f, maxSize+1))
}

func ours(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

// save replaces the file of the onboarding under way.
func (s *Store) save(st *State) error { return s.write(s.path(stateFile), st) }

// write replaces a file as a whole: whoever looks, even after a crash of the computer, finds the old content or the new one.
func (s *Store) write(path string, st *State) error {
	data, err := st.encode()
	if err != nil {
		return err
	}
	return atomicfile.Write(path, atomicfile.Private, data)
}

// backup keeps what an onboarding was before its rollback. Its name is that of the state's last write, so a repeated rollback writes no
// second one.
func (s *Store) backup(st *State) error {
	return s.write(s.path("before-rollback-"+st.Timestamp.Format("20060102T150405.000Z")+".json"), st)
}

// archive moves the state of a finished onboarding out of the way of the next one.
func (s *Store) archive(st *State) error {
	all, err := s.archived()
	if err != nil {
		return err
	}
	next := 1
	if len(all) > 0 {
		next = all[len(all)-1].Number + 1
	}
	if err := atomicfile.Rename(s.path(stateFile), s.path(archiveDir, fmt.Sprintf("%06d-%s.json", next, st.Status))); err != nil {
		return err
	}
	return errors.Join(atomicfile.SyncDir(s.path(archiveDir)), atomicfile.SyncDir(s.dir))
}

// Finished is one onboarding that has ended.
type Finished struct {
	Number int    `json:"number"` // from 1; unlike times, numbers do not depend on the clock
	Path   string `json:"path"`
	State  *State `json:"state,omitempty"`
	Err    string `json:"error,omitempty"` // why the file is refused
}

var archiveName = regexp.MustCompile(`^([0-9]{6})-(completed|rolled_back)\.json$`)

// archived lists the finished onboardings without their states, the oldest first.
func (s *Store) archived() ([]Finished, error) {
	entries, err := os.ReadDir(s.path(archiveDir)) // in the order of their names
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	all := []Finished{}
	for _, e := range entries {
		if m := archiveName.FindStringSubmatch(e.Name()); m != nil {
			n, _ := strconv.Atoi(m[1]) // six digits
			all = append(all, Finished{Number: n, Path: s.path(archiveDir, e.Name())})
		}
	}
	return all, nil
}

// History lists the onboardings that have ended, the oldest first. It changes nothing.
func (s *Store) History() ([]Finished, error) {
	all, err := s.archived()
	for i, f := range all {
		st, err := s.load(f.Path)
		if err != nil {
			all[i].Err = err.Error()
		}
		all[i].State = st
	}
	return all, err
}

// look finds the onboarding under way, or nil, and the last finished one of the target, or nil. It changes nothing.
func (s *Store) look() (under, last *State, err error) {
	under, err = s.current()
	if err != nil || under != nil && !under.finished() {
		return under, nil, err
	}
	if under != nil { // its process was interrupted before it had archived it
		return nil, under, nil
	}
	all, err := s.archived()
	if err != nil {
		return nil, nil, err
	}
	for _, f := range slices.Backward(all) {
		last, err = s.load(f.Path)
		if bad, refused := errors.AsType[*RefusedError](err); !refused || !bad.foreign {
			return nil, last, err
		}
	}
	return nil, nil, nil // none, or those of clusters that are gone
}
