package swarm

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/clock"
	"github.com/berth-go/berth/internal/guard"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	ms = time.Millisecond
	// limit is the zombie limit of these tests, and margin what a node gives up of
	// it: 2 ms and 1 %.
	limit, margin = 15 * time.Second, 152 * ms
	// last is when a node ends that has confirmed nothing since 0.
	last = limit - margin

	stateKey, probesKey = "berth:swarm:{nodes}:state", "berth:swarm:{nodes}:probes"
)

// world is a server in virtual time, and nodes of it.
type world struct {
	*testkit.World
	line *fakeLine
}

// inWorld runs a test in virtual time. What the test leaves running fails it.
func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	testkit.In(t, "nodes", stateKey, probesKey, func(t *testing.T, w *testkit.World) { test(t, &world{w, newLine()}) })
}

// replaced is one call of Replace.
type replaced struct {
	at     time.Duration
	old    string
	reason Reason
}

// node is a client on a link of its own, as in a process of its own.
type node struct {
	*Swarm
	*testkit.Process
	w *world

	mu       sync.Mutex
	id       string     // guarded by mu
	ids      int        // guarded by mu
	replaced []replaced // guarded by mu
	closing  bool       // guarded by mu
}

// node makes a client whose swarm is not started. It never flushes by itself unless
// change says otherwise.
func (w *world) node(id string, change ...func(*Config)) *node {
	w.T.Helper()
	n := &node{Process: w.Process(), w: w, id: id}
	space, err := keyspace.New("berth")
	require.NoError(w.T, err)
	cfg := Config{
		Runner: scriptkit.NewRunner(n.Redis, scriptkit.Options{Retry: berth.Retry{Jitter: -1}}), Space: space,
		Label: "label of " + id, FlushEvery: -1, Clock: clock.New(), Line: w.line,
		Node: n.current, Replace: n.replace, Observe: n.Observer(nil).Observe, Rand: func() float64 { return 0.5 },
	}
	for _, f := range change {
		f(&cfg)
	}
	n.Swarm, err = New(cfg)
	require.NoError(w.T, err)
	w.T.Cleanup(func() {
		// As a process that is killed: it asks nobody.
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		_ = n.Stop(gone)
		_ = n.Stop(context.Background())
	})
	return n
}

func (n *node) current() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.id
}

func (n *node) replace(_ context.Context, reason Reason) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.Passed(n.id) {
		panic("a node is replaced whose horizon has not passed")
	}
	n.replaced = append(n.replaced, replaced{n.w.Now(), n.id, reason})
	n.ids++
	n.id = fmt.Sprintf("%s-%d", n.replaced[0].old, n.ids)
	if n.Passed(n.id) {
		panic("the new node has passed its horizon")
	}
	if n.closing {
		return ""
	}
	return n.id
}

// ends are the replacements so far.
func (n *node) ends() []replaced {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.replaced)
}

// start starts the swarm, which succeeds.
func (n *node) start() *node {
	n.w.T.Helper()
	require.NoError(n.w.T, n.Start(context.Background()))
	return n
}

// probesMeet has such a fate meet each probe from now on.
func (n *node) probesMeet(fate link.Fate) {
	n.OnCommand(func(c link.Command) link.Fate {
		if c.Name == "swarm_probe" {
			return fate
		}
		return link.Pass
	})
}

// inBackground runs a call, and lets everything settle.
func inBackground(call func() error) <-chan error {
	returned := make(chan error, 1)
	go func() { returned <- call() }()
	synctest.Wait()
	return returned
}

// heal mends the link, and probes until that is confirmed: the connections that were
// there before may still have to be found broken.
func (n *node) heal() {
	n.w.T.Helper()
	n.Mend()
	for range 3 {
		if n.ProbeNow(context.Background()) == nil {
			return
		}
	}
	n.w.T.Fatal("no probe is confirmed")
}

// flushes has the node make one pass, which succeeds.
func (n *node) flushes(want Flushed) {
	n.w.T.Helper()
	out, err := n.FlushNow(context.Background())
	require.NoError(n.w.T, err)
	require.Equal(n.w.T, want, out)
}

// zombies is Zombies, which succeeds.
func (n *node) zombies() Zombies {
	n.w.T.Helper()
	z, err := n.Zombies(context.Background())
	require.NoError(n.w.T, err)
	return z
}

// listed are the nodes that Info goes through.
func (n *node) listed() map[string]Node {
	n.w.T.Helper()
	all := make(map[string]Node)
	for _, one := range testkit.Collect(n.w.T, n.Info(context.Background())) {
		all[one.ID] = one
	}
	return all
}

const limitMS, memoryMS = "15000", "86400000"

func (w *world) probe(node string, run int) string {
	w.T.Helper()
	r := w.Call("swarm_probe", node, strconv.Itoa(run), "l", limitMS, memoryMS)
	return r.Status()
}

// condemn returns the status, and the number that it comes with, or 0.
func (w *world) condemn(node string) string {
	w.T.Helper()
	r := w.Call("swarm_condemn", node, memoryMS)
	if r.Len() == 1 {
		return r.Status() + " 0"
	}
	return fmt.Sprint(r.Status(), " ", r.Int(1))
}

func (w *world) leave(node string, run, stays int) string {
	w.T.Helper()
	r := w.Call("swarm_leave", node, strconv.Itoa(run), strconv.Itoa(stays), memoryMS)
	return r.Status()
}

// members are the members of the probes, in order.
func (w *world) members() []string {
	w.T.Helper()
	members, err := w.Do("ZRANGE", probesKey, "0", "-1").AsStrSlice()
	require.NoError(w.T, err)
	return members
}

var errMine = errors.New("my own reason")

// fakeLine is a Line in memory.
type fakeLine struct {
	mu       sync.Mutex
	names    []string
	holders  map[string][]berth.Holder
	waiters  map[string][]berth.Waiter
	broken   map[string]error // what a name answers with
	released []string         // name/claim, in order
	unknown  map[string]bool  // what the asking node does not know, by claim
	parting  func()           // runs when that was asked
	passes   int              // how often the names were asked for
}

func newLine() *fakeLine {
	return &fakeLine{
		holders: make(map[string][]berth.Holder), waiters: make(map[string][]berth.Waiter), broken: make(map[string]error),
	}
}

// ref is a lock, or what the word before a colon says.
func ref(name string) berth.Ref {
	if kind, name, ok := strings.Cut(name, ":"); ok {
		return berth.Ref{Kind: keyspace.Kind(kind), Name: name}
	}
	return berth.Ref{Kind: keyspace.Lock, Name: name}
}

// key is what ref was made of.
func key(of berth.Ref) string {
	if of.Kind == keyspace.Lock {
		return of.Name
	}
	return string(of.Kind) + ":" + of.Name
}

func (l *fakeLine) name(name string) {
	if !slices.Contains(l.names, name) {
		l.names = append(l.names, name)
	}
}

func (l *fakeLine) holds(name string, h berth.Holder) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.name(name)
	l.holders[name] = append(l.holders[name], h)
}

func (l *fakeLine) hold(name, claim, node string, detached bool) {
	l.holds(name, berth.Holder{ID: claim, Node: node, Owner: "owner of " + claim, Detached: detached})
}

// endless is hold for a claim without end of a node that is in a swarm.
func (l *fakeLine) endless(name, claim, node string, limit time.Duration) {
	l.holds(name, berth.Holder{ID: claim, Node: node, Label: "label of " + node, ZombieAfter: limit})
}

// detach has all holds of a name detached.
func (l *fakeLine) detach(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.holders[name] {
		l.holders[name][i].Detached = true
	}
}

func (l *fakeLine) wait(name, claim, node string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.name(name)
	l.waiters[name] = append(l.waiters[name], berth.Waiter{ID: claim, Node: node})
}

// errPanics has the names panic.
var errPanics = errors.New("no such index")

// fail makes a name, one claim of it ("name/claim"), or all of the names ("*") fail,
// or work again.
func (l *fakeLine) fail(what string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		delete(l.broken, what)
		return
	}
	l.broken[what] = err
}

func (l *fakeLine) ended() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.released)
}

func (l *fakeLine) passed() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.passes
}

func (l *fakeLine) Names(context.Context) iter.Seq2[berth.Ref, error] {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.passes++
	if errors.Is(l.broken["*"], errPanics) {
		panic(guard.Meant(errPanics.Error()))
	}
	var names []berth.Ref
	for _, name := range l.names {
		names = append(names, ref(name))
	}
	return each(names, l.broken["*"])
}

func (l *fakeLine) Holders(_ context.Context, of berth.Ref) iter.Seq2[berth.Holder, error] {
	name := key(of)
	l.mu.Lock()
	defer l.mu.Unlock()
	return each(slices.Clone(l.holders[name]), nil)
}

func (l *fakeLine) Waiters(_ context.Context, of berth.Ref) iter.Seq2[berth.Waiter, error] {
	name := key(of)
	l.mu.Lock()
	defer l.mu.Unlock()
	return each(slices.Clone(l.waiters[name]), l.broken[name])
}

// Unknown says what a test says.
func (l *fakeLine) Unknown(claim string) bool {
	l.mu.Lock()
	unknown, then := l.unknown[claim], l.parting
	l.mu.Unlock()
	if then != nil {
		then()
	}
	return unknown
}

// ForceRelease hands what is freed to the first waiter.
func (l *fakeLine) ForceRelease(_ context.Context, of berth.Ref, claim, node string) error {
	name := key(of)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.broken[name+"/"+claim]; err != nil {
		return err
	}
	waiters, holders := len(l.waiters[name]), len(l.holders[name])
	l.waiters[name] = slices.DeleteFunc(l.waiters[name], func(w berth.Waiter) bool { return w.ID == claim && w.Node == node })
	l.holders[name] = slices.DeleteFunc(l.holders[name], func(h berth.Holder) bool { return h.ID == claim && h.Node == node })
	if len(l.waiters[name]) == waiters && len(l.holders[name]) == holders {
		return berth.ErrNotHeld
	}
	l.released = append(l.released, name+"/"+claim)
	if len(l.holders[name]) == 0 && len(l.waiters[name]) > 0 {
		first := l.waiters[name][0]
		l.waiters[name] = l.waiters[name][1:]
		l.holders[name] = append(l.holders[name], berth.Holder{ID: first.ID, Node: first.Node})
	}
	return nil
}

func each[T any](all []T, err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, one := range all {
			if !yield(one, nil) {
				return
			}
		}
		if err != nil {
			var zero T
			yield(zero, err)
		}
	}
}
