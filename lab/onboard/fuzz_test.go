package onboard

import (
	"bytes"
	"errors"
	"os"
	"testing"
)

// seedStates adds files of every kind of state, good and spoiled.
func seedStates(f *testing.F) {
	completed, back, failed := sample(), sample(), sample()
	for _, p := range phases {
		completed.set(p.ID, Completed, nil)
		completed.PhaseTimes[p.ID] = Times{Started: completed.Started, Ended: completed.Timestamp, Attempts: 1}
	}
	completed.Status, completed.CurrentPhase = Completed, ""
	turnBack(back)
	back.Changes[1].Status = Undone
	failed.set(NodeJoinMonitoring, Failed, errBroken)
	for _, s := range []*State{sample(), completed, back, failed} {
		data := encoded(f, s)
		for _, seed := range [][]byte{
			data, data[:len(data)/3], data[:len(data)-2], bytes.Replace(data, []byte(`"schema": 1`), []byte(`"schema": 2`), 1),
			bytes.Replace(data, []byte("completed"), []byte("skipped"), 1), bytes.ReplaceAll(data, []byte("\n"), nil),
		} {
			f.Add(seed)
		}
	}
	for _, seed := range []string{"", "{", "{}", "[]", "null", head, head + headDone, `{"schema": 1e9}`, `{"schema": -1}`} {
		f.Add([]byte(seed))
	}
}

// variants are a file as it is, and with the checksum that its body has: without it nothing would get past that check.
func variants(data []byte) [][]byte {
	if lines := bytes.SplitAfterN(data, []byte("\n"), 3); len(lines) == 3 {
		return [][]byte{data, seal(lines[2])}
	}
	return [][]byte{data}
}

// Whatever is taken is written back byte for byte, with a checksum that fits.
func FuzzParse(f *testing.F) {
	seedStates(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, data := range variants(data) {
			s, err := parse(data)
			if err != nil {
				if _, ok := errors.AsType[*RefusedError](err); !ok || s != nil {
					t.Errorf("got %v, %v", s, err)
				}
				continue
			}
			if again, err := s.encode(); err != nil || !bytes.Equal(again, data) {
				t.Errorf("taken:\n%s\nwritten again, %v:\n%s", data, err, again)
			}
			if lines := bytes.SplitAfterN(data, []byte("\n"), 3); string(lines[1]) != "  \"checksum\": \"sha256:"+checksum(lines[2])+"\",\n" {
				t.Errorf("the checksum does not fit:\n%s", data)
			}
		}
	})
}

// Whatever is refused starts nothing, and stays as it is.
func FuzzBadFile(f *testing.F) {
	seedStates(f)
	engine := newFake(f.TempDir())
	if err := engine.Store.makeDirs(); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, data := range variants(data) {
			if _, err := parse(data); err != nil {
				nothingDone(t, engine, data)
			}
		}
	})
}

func nothingDone(t *testing.T, f *fake, data []byte) {
	path := f.Store.path(stateFile)
	must(t, os.WriteFile(path, data, 0o600))
	for _, err := range []error{f.Run(t.Context(), Options{Resume: true}), f.Run(t.Context(), Options{}), f.Rollback(t.Context())} {
		if _, ok := errors.AsType[*RefusedError](err); !ok {
			t.Errorf("got %v", err)
		}
	}
	after, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(after, data) || f.world.done() != "" || f.events.Len() > 0 {
		t.Errorf("%s%s\nwith\n%s\nnow %v:\n%s", f.world.done(), f.events, data, err, after)
	}
}
