package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8slab/config"
	"k8slab/lab/event"
	"k8slab/lab/join"
)

// What labnode may take to look at its machine, and to mend what it finds. A program that hangs, on a disk that does not answer, ends with this.
const (
	askBudget  = time.Minute
	mendBudget = 5 * time.Minute
)

// factsLimit is far above what labnode says of a machine, in bytes.
const factsLimit = 1 << 20

// namedReader is a node that is asked.
type namedReader interface {
	reader
	Name() string
}

// readFacts asks a node what it is.
func (l *Lab) readFacts(ctx context.Context, n namedReader) (join.Facts, error) {
	ctx, cancel := l.within(ctx, askBudget)
	defer cancel()
	end := l.slow(n.Name(), "facts")
	out, err := n.Read(ctx, labnode, "facts")
	if err := end(err); err != nil {
		return join.Facts{}, err
	}
	var f join.Facts
	if len(out) > factsLimit {
		return f, fmt.Errorf("%s: its facts are larger than %d MiB", n.Name(), factsLimit>>20)
	}
	if err := json.Unmarshal([]byte(out), &f); err != nil {
		return f, fmt.Errorf("%s: read its facts: %w", n.Name(), err)
	}
	return f, nil
}

// slow shows a step for what is not over soon, so that nobody waits without a word. The function that it returns ends it, and hands on the error.
func (l *Lab) slow(name, phase string) (end func(error) error) {
	var mu sync.Mutex
	var step *event.Step
	over := false
	begin := time.AfterFunc(slowAfter, func() {
		mu.Lock()
		defer mu.Unlock()
		if !over {
			step = l.events.Start(name, phase, 0)
		}
	})
	return func(err error) error {
		begin.Stop()
		mu.Lock()
		defer mu.Unlock()
		if over = true; step == nil {
			return err
		}
		return step.End(err)
	}
}

// slowAfter is how long somebody may wait without a word.
const slowAfter = 5 * time.Second

// facts reads what the nodes are. The error tells of those that do not answer; the others' facts are there all the same.
func (l *Lab) facts(ctx context.Context, members []config.Node) (map[string]join.Facts, error) {
	all := make([]join.Facts, len(members))
	known := make([]bool, len(members))
	err := together(members, func(n config.Node) error {
		i := slices.IndexFunc(members, func(m config.Node) bool { return m.Name == n.Name })
		f, err := l.readFacts(ctx, l.nodes[n.Name])
		all[i], known[i] = f, err == nil
		return err
	})
	byName := map[string]join.Facts{}
	for i, n := range members {
		if known[i] {
			byName[n.Name] = all[i]
		}
	}
	return byName, err
}
