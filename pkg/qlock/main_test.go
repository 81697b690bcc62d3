package qlock_test

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ctx = context.Background()

const (
	ms            = time.Millisecond
	lease, margin = testkit.Lease, testkit.Margin
	// door is the lock of these tests, for those that need only one.
	door = "door"
	// stateKey and lineKey are its keys.
	stateKey, lineKey = "berth:lock:{door}:state", "berth:lock:{door}:line"
)

// world is a server in virtual time, and processes of it.
type world struct{ *testkit.World }

// inWorld runs a test in virtual time. What the test leaves running fails it.
func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	testkit.In(t, door, stateKey, lineKey, func(t *testing.T, w *testkit.World) { test(t, &world{w}) })
}

// inWorldOf runs one row of a table in a world of its own.
func inWorldOf(t *testing.T, row string, test func(t *testing.T, w *world)) {
	t.Helper()
	t.Run(row, func(t *testing.T) { inWorld(t, test) })
}

// each runs a test in virtual time for each row of a table.
func each[R any](t *testing.T, rows map[string]R, test func(t *testing.T, w *world, row R)) {
	t.Helper()
	for name, row := range rows {
		inWorldOf(t, name, func(t *testing.T, w *world) { test(t, w, row) })
	}
}

// proc is a process on a link of its own: a node, and its locks.
type proc struct {
	*node.Node
	*qlock.Locks
	*testkit.Process
	w *world
}

// node starts a process. The lease of its locks, and of the node, is that of the tests unless cfg says so.
func (w *world) node(cfg ...node.Config) *proc {
	w.T.Helper()
	return w.with(qlock.LockOptions{}, cfg...)
}

// with starts a process whose locks have defaults.
func (w *world) with(defaults qlock.LockOptions, cfg ...node.Config) *proc {
	w.T.Helper()
	n := &proc{Process: w.Process(), w: w}
	var c node.Config
	if len(cfg) > 0 {
		c = cfg[0]
	}
	c.Lease, c.Observer = cmp.Or(c.Lease, lease), n.Observer(c.Observer)
	var err error
	n.Node, err = node.New(n.Redis, c)
	require.NoError(w.T, err)
	n.Closes(n.Close)
	n.Locks = qlock.New(n.Node, qlock.Config{Lease: c.Lease, Defaults: defaults})
	return n
}

// connect makes all of the process's connections for calls, and has it acquire once.
func (n *proc) connect() {
	n.w.T.Helper()
	l := n.w.got(n.Lock(context.Background(), "connect", nil))
	require.NoError(n.w.T, l.Release(context.Background()))
	n.w.Do("DEL", "berth:lock:{connect}:state")
	n.Connected()
}

// asks says whether a command is the script of a verb, that of locks or that of thin names.
func asks(c link.Command, verb string) bool { return c.Name == "lock_"+verb || c.Name == "thin_"+verb }

// asked is how many scripts of a verb have been sent since the last Reset.
func (n *proc) asked(verb string) int { return n.Count("lock_"+verb) + n.Count("thin_"+verb) }

// on has f decide, from now on, what becomes of the calls of a verb, or of the script of that name.
func (n *proc) on(verb string, f func() link.Fate) {
	n.OnCommand(func(c link.Command) link.Fate {
		if c.Name == verb || asks(c, verb) {
			return f()
		}
		return link.Pass
	})
}

// meets has each such call meet a fate.
func (n *proc) meets(verb string, fate link.Fate) { n.on(verb, func() link.Fate { return fate }) }

// refused is what an error says of an acquire that was refused for a reason.
func refused(t *testing.T, reason berth.Reason, err error, what ...any) *berth.AcquireError {
	t.Helper()
	var e *berth.AcquireError
	require.ErrorAs(t, err, &e, what...)
	require.Equal(t, reason, e.Reason, what...)
	return e
}

// again has an owner enter once more.
func (n *proc) again(owner string) *qlock.Lock {
	n.w.T.Helper()
	return n.takeFor(owner, &qlock.LockOptions{Conflict: qlock.WorkThrough})
}

// leftOf is what the server says is left of a lock's hold; ok is false if it has none.
func (w *world) leftOf(l *qlock.Lock) (left time.Duration, ok bool) {
	w.T.Helper()
	of := *w.World
	of.State, of.Line = "berth:lock:{"+l.Name()+"}:state", "berth:lock:{"+l.Name()+"}:line"
	return of.LeftOf(l.ID())
}

// take locks the door at once.
func (n *proc) take(opts *qlock.LockOptions) *qlock.Lock {
	n.w.T.Helper()
	return n.takeOn(context.Background(), opts)
}

// takeFor locks the door at once for an owner.
func (n *proc) takeFor(owner string, opts *qlock.LockOptions) *qlock.Lock {
	n.w.T.Helper()
	return n.takeOn(berth.WithOwner(context.Background(), owner), opts)
}

func (n *proc) takeOn(ctx context.Context, opts *qlock.LockOptions) *qlock.Lock {
	n.w.T.Helper()
	l := n.w.got(n.Lock(ctx, door, opts))
	return l
}

// got is a lock that a call must have got.
func (w *world) got(l *qlock.Lock, err error) *qlock.Lock {
	w.T.Helper()
	require.NoError(w.T, err)
	return l
}

// gotAll is a set of locks that a call must have got.
func (w *world) gotAll(set *qlock.LockSet, err error) *qlock.LockSet {
	w.T.Helper()
	require.NoError(w.T, err)
	return set
}

// wait is an acquire that is on its way.
type wait = testkit.Wait[*qlock.Lock]

// queue locks the door in the background, and lets everything settle.
func (n *proc) queue(opts *qlock.LockOptions) *wait {
	n.w.T.Helper()
	return n.queueOn(context.Background(), opts)
}

func (n *proc) queueOn(ctx context.Context, opts *qlock.LockOptions) *wait {
	return testkit.Queue(ctx, n.w.World, func(ctx context.Context) (*qlock.Lock, error) { return n.Lock(ctx, door, opts) })
}

// seen is a lock as a reader sees it. A free one has no Owner and no entries.
type seen struct {
	berth.LockInfo
	fence   int64
	waiting int
	entries []berth.Holder
}

// look looks at a lock.
func (n *proc) look(ctx context.Context, name string) (s seen, err error) {
	reader, err := inspect.New(n.Redis, inspect.Config{})
	require.NoError(n.w.T, err)
	now, err := reader.Name(ctx, keyspace.Lock, name)
	if err != nil {
		return s, err
	}
	if s.waiting = now.Waiting; now.Lock != nil {
		s.LockInfo = *now.Lock
	}
	holders, err := reader.Holders(ctx, keyspace.Lock, name, "", 0)
	if s.entries = holders.Items; len(s.entries) > 0 {
		s.fence = s.entries[0].Fence
	}
	return s, errors.Join(append(holders.Problems, err)...)
}

// info looks at the door.
func (n *proc) info() seen {
	n.w.T.Helper()
	s, err := n.look(context.Background(), door)
	require.NoError(n.w.T, err)
	return s
}

// locked says whether somebody holds a lock.
func (n *proc) locked(ctx context.Context, name string) (bool, error) {
	s, err := n.look(ctx, name)
	return s.Owner != "", err
}

// extend extends what is held of a lock, whoever holds it.
func (n *proc) extend(ctx context.Context, name string, by time.Duration) error {
	return qlock.NewOperator(n.Node).Extend(ctx, name, by)
}

// end ends what is held of a lock by force.
func (n *proc) end(ctx context.Context, name string) error {
	return testkit.Second(n.Operator().Release(ctx, berth.Target{Kind: keyspace.Lock, Name: name}))
}

// requireLeft fails unless the server has so much left of a lock's hold, to the millisecond.
func (w *world) requireLeft(want time.Duration, l *qlock.Lock, what ...any) {
	w.T.Helper()
	left, ok := w.LeftOf(l.ID())
	require.True(w.T, ok, what...)
	require.Equal(w.T, want.Round(ms), left.Round(ms), what...)
}

// honest fails unless a handle lives, and ends before the server lets it go.
func (w *world) honest(l *qlock.Lock) {
	w.T.Helper()
	left, ok := w.LeftOf(l.ID())
	require.True(w.T, ok, "the server does not know it")
	require.NoError(w.T, l.Err())
	if l.Left() != berth.Forever {
		require.LessOrEqual(w.T, l.Left(), left-2*ms)
	}
}

// held is who holds the door, the outermost first, and who waits, by their claims.
func (w *world) held(n *proc) (entries, waiters []string) {
	w.T.Helper()
	info, err := n.look(context.Background(), door)
	require.NoError(w.T, err)
	for _, h := range info.entries {
		entries = append(entries, h.ID)
	}
	for _, q := range w.Waiters() {
		waiters = append(waiters, q.ID)
	}
	return entries, waiters
}
