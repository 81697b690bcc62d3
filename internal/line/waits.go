package line

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/berth-go/berth/internal/clock"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/scripts/composed"
)

const (
	// notedFor is for how long a node does not note a name again.
	notedFor = 30 * time.Second
	// believed is for how long the registry believes a note, at least: a node whose wait lease is
	// longer says that, up to mostBelieved, since its waiting claims beat each third of it.
	believed     = 5 * time.Minute
	mostBelieved = 24 * time.Hour
	// noteEach is how long a node gathers names between two notes.
	noteEach = 250 * time.Millisecond
	// mostNoted is how many names one script notes.
	mostNoted = 200
	// fewNoted is at how many names a node begins to forget those that are due again.
	fewNoted = 1024
)

// waits keeps the registry of the names that somebody waits for: whoever looks for these finds
// them without walking through all names. The registry is a hint, so nobody waits for a note, and
// one that fails is not repeated: the name's next is due in 30 s.
type waits struct {
	clock clock.Clock
	// background runs send, and reports false once the node is closed.
	background func(send func(closing <-chan struct{})) bool
	// note runs waits_note for each of the shards that has names.
	note func(due [state.Shards][]string)

	mu      sync.Mutex
	noted   map[engine.Line]time.Duration // guarded by mu: when names were noted
	many    int                           // guarded by mu: at how many of them those are dropped that are due again
	due     [state.Shards][]string        // guarded by mu: members to note
	sending bool                          // guarded by mu: send runs
}

// add takes note that a claim of this node waits for a name.
func (w *waits) add(at engine.Line) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock.Now()
	if when, ok := w.noted[at]; ok && now-when < notedFor {
		return
	}
	if len(w.noted) >= w.many {
		maps.DeleteFunc(w.noted, func(_ engine.Line, when time.Duration) bool { return now-when >= notedFor })
		w.many = max(fewNoted, 2*len(w.noted))
	}
	w.noted[at] = now
	member := state.Member(string(at.Kind), at.Name)
	shard := state.Shard(member)
	w.due[shard] = append(w.due[shard], member)
	if !w.sending {
		w.sending = w.background(w.send)
	}
}

// send notes what is due, and then, until nothing is, what has become due meanwhile. The first
// note of a calm node goes out at once.
func (w *waits) send(closing <-chan struct{}) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-closing:
			return
		case <-pause.C:
		}
		due, ok := w.take()
		if !ok {
			return
		}
		w.note(due)
		pause.Reset(noteEach)
	}
}

// take takes what is due out of the list, up to 200 members of each shard. It reports false, and
// that send has ended, if that is nothing.
func (w *waits) take() (due [state.Shards][]string, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, members := range w.due {
		n := min(len(members), mostNoted)
		due[i], w.due[i] = members[:n], members[n:]
		ok = ok || n > 0
	}
	w.sending = ok
	return due, ok
}

// noteAll runs waits_note once for each shard.
func noteAll(cfg *Config, due [state.Shards][]string) {
	lasts := strconv.FormatInt(min(max(believed, cfg.Settings.Lease), mostBelieved).Milliseconds(), 10)
	var calls []scriptkit.Call
	for shard, members := range due {
		if len(members) > 0 {
			calls = append(calls, scriptkit.Call{
				Script: composed.WaitsNote,
				Keys:   []string{cfg.Space.Key(keyspace.Waits, strconv.Itoa(shard), keyspace.NamesPart)},
				Args:   slices.Concat([]string{lasts}, members),
			})
		}
	}
	cfg.Runner.RunMany(context.Background(), calls, func(int, scriptkit.Reply, error) {})
}
