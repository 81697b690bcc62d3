package qlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// errMine is a cause that only these tests have.
var errMine = errors.New("mine")

// release gives a lock back.
func release(t *testing.T, l *qlock.Lock) {
	t.Helper()
	require.NoError(t, l.Release(context.Background()))
}

// line are the claims that wait, in order.
func (w *world) line(n *proc) []string {
	w.T.Helper()
	_, waiters := w.held(n)
	return waiters
}

// claim is one that a test asks for by the script alone. Its node answers nothing
// and lives only by what the test sends.
type claim struct {
	node, id    string
	owner       string
	conflict    qlock.Conflict
	access      qlock.Access
	priority    int
	draw        uint32
	lease, wait time.Duration
	try         bool
}

// ask acquires for a claim.
func (w *world) ask(c claim) *scriptkit.Reply {
	w.T.Helper()
	if c.conflict == 0 {
		c.conflict = qlock.FailDeadlock
	}
	if c.access == 0 {
		c.access = qlock.Queued
	}
	if c.lease == 0 {
		c.lease = lease
	}
	if c.wait == 0 {
		c.wait = lease
	}
	mode := "1"
	if c.try {
		mode = "0"
	}
	r := engine.Record{Weight: 1, Wait: c.wait, Lease: c.lease, Phase: 'w', Priority: c.priority, Node: c.node, Owner: c.owner}
	how := ""
	if c.owner != "" || c.access != qlock.Queued {
		how = fmt.Sprintf("%s %s %d %s", c.conflict, c.access, c.draw, c.owner)
	}
	reply := w.Acquires("lock", c.node, c.id, &r, mode, "-", how)
	return &reply
}

func TestALockIsTakenAndGivenBackWithTwoScripts(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.connect()
		l := n.take(&qlock.LockOptions{Meta: map[string]string{"why": "a test"}})
		require.True(t, strings.HasPrefix(l.ID(), n.ID()+"."))
		require.Equal(t, l.ID(), l.Owner(), "every claim is its own owner")
		require.Positive(t, l.Fence())
		require.Equal(t, []any{door, qlock.Granted}, []any{l.Name(), l.Via()})
		require.Equal(t, []time.Duration{0, lease - margin}, []time.Duration{l.Waited(), l.Left()})
		require.Equal(t, l.Fence(), n.Fence(l.Context(), door))
		require.Zero(t, n.Fence(ctx, door))
		require.Zero(t, n.Fence(l.Context(), "another"))
		info := n.info()
		require.Equal(t, lease, info.Left)
		require.Equal(t, l.Fence(), info.fence)
		require.Equal(t, map[string]string{"why": "a test"}, info.entries[0].Meta)
		w.Advance(time.Second)
		require.NoError(t, l.Release(ctx))
		require.NoError(t, l.Release(ctx), "nil ever after")
		require.Equal(t, map[string]int{"thin_acquire": 1, "thin_release": 1}, n.Scripts())
		require.ErrorIs(t, l.Err(), berth.ErrReleased)
		require.ErrorIs(t, context.Cause(l.Context()), berth.ErrReleased)
		require.Zero(t, l.Left())
		require.ErrorIs(t, l.Renew(ctx), berth.ErrReleased)
		require.ErrorIs(t, l.Extend(ctx, time.Second), berth.ErrReleased)
		w.RequireIdle()
		for _, access := range []qlock.Access{qlock.Queued, qlock.Random, qlock.LIFO} { // with nobody in line they are alike
			w.Advance(ms) // two grants of one microsecond are nothing plain
			next := n.take(&qlock.LockOptions{Access: access})
			w.requireForm(true, access)
			require.Greater(t, next.Fence(), l.Fence())
			release(t, next)
		}
	})
}

func TestTryLockSaysThatTheLockIsHeldAndLeavesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		b.connect()
		held := a.take(nil)
		a.queue(nil)
		before := w.Dump()
		b.Reset()
		_, err := b.TryLock(context.Background(), door, nil)
		var refusal *berth.AcquireError
		require.ErrorAs(t, err, &refusal)
		require.ErrorIs(t, err, berth.ErrNotAcquired)
		require.ErrorIs(t, err, berth.ErrBusy)
		require.NotErrorIs(t, err, berth.ErrDeadlock)
		require.Equal(t, &berth.AcquireError{
			Name: door, Claim: refusal.Claim, Reason: berth.ReasonHeld, Held: 1, Waiting: 1,
		}, refusal)
		require.ErrorContains(t, err, `"door" not acquired: held (waiting 1)`)
		require.Equal(t, map[string]int{"thin_acquire": 1, "lock_acquire": 1}, b.Counts())
		require.Equal(t, before, w.Dump())
		require.NoError(t, held.Err())
		l := w.got(b.TryLock(context.Background(), "another", nil))
		release(t, l)
	})
}

// What Do makes of the end of its function, its caller and its hold is proved by internal/engine.
func TestDoRunsUnderTheLockAndGivesItBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, other := w.node(), w.node()
		nothing := func(context.Context) error { return nil }
		for name, do := range map[string]func(context.Context, string, *qlock.LockOptions, func(context.Context) error) error{
			"Do": n.Do, "TryDo": n.TryDo,
		} {
			err := do(berth.WithOwner(ctx, "me"), door, nil, func(inner context.Context) error {
				require.Equal(t, "me", berth.Owner(inner))
				require.Positive(t, n.Fence(inner, door))
				require.ErrorIs(t, other.TryDo(ctx, door, nil, nothing), berth.ErrBusy)
				require.ErrorIs(t, n.TryDo(inner, door, nil, nothing), berth.ErrDeadlock, "the owner holds it")
				return errMine
			})
			require.Equal(t, errMine, err, name)
			w.RequireIdle()
		}
	})
}

// sweep drops what has expired.
func (w *world) sweep() {
	w.T.Helper()
	w.Call("lock_sweep", "60000", "berth:wake:", door, "looks-on", "0")
}

// A hold that is over protects nothing: a server that does not answer does not hold up its caller. Close waits for
// the release.
func TestAReleaseOfALostHoldWaitsForTheCleanupTimeout(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node(node.Config{CleanupTimeout: 500 * ms})
		l := n.take(nil)
		n.Cut()
		<-l.Context().Done()
		at := w.Now()
		require.ErrorIs(t, l.Release(context.Background()), berth.ErrLost)
		require.Equal(t, 500*ms, w.Now()-at)
		require.Empty(t, n.Told(observe.ReleaseFailed))
		_ = n.Close(t.Context())
		require.Len(t, n.Told(observe.ReleaseFailed), 1)
	})
}
