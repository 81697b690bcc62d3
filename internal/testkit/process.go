package testkit

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing/synctest"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/observe/measure"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/scripts/composed"
)

// library has all scripts.
var library = sync.OnceValue(composed.Library)

// scripts are all scripts by their SHA-1.
var scripts = sync.OnceValue(func() map[string]*scriptkit.Script {
	byHash := make(map[string]*scriptkit.Script)
	for _, s := range library().Scripts() {
		byHash[s.SHA] = s
	}
	return byHash
})

// Script finds a script by its SHA-1, nil where there is none.
func Script(sha string) *scriptkit.Script { return scripts()[sha] }

// ScriptsOf are those of a kind for what every kind does; the kind is semaphore, lock or pool.
func ScriptsOf(kind string) line.Scripts {
	of := func(verb string) *scriptkit.Script { return library().Script(kind + "_" + verb) }
	scripts := line.Scripts{
		Acquire: of("acquire"), Release: of("release"), Renew: of("renew"), Resume: of("resume"), Restore: of("restore"),
		Sweep: of("sweep"), ForceRelease: of("force_release"), Pause: of("pause"), Want: of("want"),
	}
	if kind == "lock" {
		scripts.Requeue = composed.LockRequeue
	}
	return scripts
}

// Process is what one process of a test, with its node, stands on: a link of its own and a
// record of its events.
type Process struct {
	*link.Link
	W     *World
	Redis rueidis.Client

	mu      sync.Mutex
	events  []observe.Event // guarded by mu
	waiters Waiters         // guarded by mu: by all events, those from before the last Fresh too
	wrong   []error         // guarded by mu: what waiters has found
	meter   *measure.Meter  // measures all events
	closes  func(context.Context) error
}

// Process makes a link and a rueidis client on it. The node takes
// its Observer, and is handed to Closes.
func (w *World) Process() *Process {
	w.T.Helper()
	p := &Process{W: w, Link: link.New(Script)}
	var err error
	// Few classes, so that they are used up while claims wait and hold.
	p.meter, err = measure.New(measure.Config{NameClass: measure.Collapse, MaxClasses: 2},
		func(measure.Instrument, []string) measure.Record { return func(context.Context, float64) {} })
	require.NoError(w.T, err)
	p.Redis, err = w.Server.Client(link.RarePings, link.Slim, p.Wrap)
	require.NoError(w.T, err)
	w.T.Cleanup(p.Redis.Close)
	return p
}

// Observer records the events, and tells them to also if that is not nil.
func (p *Process) Observer(also observe.Observer) observe.Observer {
	return observe.Func(func(e observe.Event) {
		p.mu.Lock()
		p.events = append(p.events, e)
		if err := p.waiters.Take(e); err != nil {
			p.wrong = append(p.wrong, err)
		}
		p.mu.Unlock()
		p.meter.Observe(e)
		if also != nil {
			also.Observe(e)
		}
	})
}

// Closes says how the node is closed, at the end of the test at the latest.
func (p *Process) Closes(by func(context.Context) error) {
	p.closes = by
	p.W.T.Cleanup(p.Shut)
}

// Shut closes the node, as a program does before it ends. What the node has told of who
// waits, and who holds, must have been right.
func (p *Process) Shut() {
	if p.closes != nil {
		_ = p.closes(context.Background())
		p.closes = nil
		require.Zero(p.W.T, p.Waiting())
		require.Zero(p.W.T, p.Held())
		p.meter.Collect(func(in measure.Instrument, labels []string, value int64) {
			if in.Type == measure.Gauge {
				require.Zero(p.W.T, value, "%s %v", in.Name, labels)
			}
		})
	}
}

// Die ends the node's connections for good: nothing of it reaches the server any
// more, as after a kill -9.
func (p *Process) Die() { p.Cut() }

// Events are the events so far.
func (p *Process) Events() []observe.Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]observe.Event(nil), p.events...)
}

// Kinds are the kinds of the events so far, but for heartbeats, which go out when they like.
func (p *Process) Kinds() []observe.Kind {
	var kinds []observe.Kind
	for _, e := range p.Events() {
		if e.Kind != observe.Heartbeat {
			kinds = append(kinds, e.Kind)
		}
	}
	return kinds
}

// Told are the events of a kind so far.
func (p *Process) Told(kind observe.Kind) []observe.Event {
	return slices.DeleteFunc(p.Events(), func(e observe.Event) bool { return e.Kind != kind })
}

// Scripts is how often each script has been sent since the last Fresh, but for waits_note, which
// goes out when it likes.
func (p *Process) Scripts() map[string]int {
	counts := p.Counts()
	delete(counts, "waits_note")
	for name := range counts {
		if name == strings.ToUpper(name) {
			delete(counts, name) // a command, as rueidis sends some when it connects
		}
	}
	return counts
}

// Connected makes all connections for calls, of a node that has acquired once, and
// forgets what that took.
func (p *Process) Connected() {
	p.W.T.Helper()
	for range 16 { // each goes over one of two connections
		require.NoError(p.W.T, p.Redis.Do(context.Background(), p.Redis.B().Exists().Key("connect").Build()).Error())
	}
	synctest.Wait() // also for what the first claim has the node load
	p.Fresh()
}

// Fresh forgets the events and the counts of commands.
func (p *Process) Fresh() {
	p.mu.Lock()
	p.events = nil
	p.mu.Unlock()
	p.Reset()
}
