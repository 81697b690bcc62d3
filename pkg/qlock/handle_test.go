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
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
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

// roundUp is when keys expire whose contents end at a moment: whole seconds.
func roundUp(at time.Duration) time.Duration { return (at + time.Second - 1).Truncate(time.Second) }

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
	reply := w.Call("lock_acquire", "60000", "berth:wake:", door, c.node, c.id, mode, line.Lane(c.priority), state.FixedTerms(&r), how)
	return &reply
}

func TestALockIsTakenAndGivenBackWithTwoScripts(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.connect()
		ctx := context.Background()
		l := n.take(&qlock.LockOptions{Meta: map[string]string{"why": "a test"}})
		require.True(t, strings.HasPrefix(l.ID(), n.ID()+"."))
		require.Equal(t, door, l.Name())
		require.Equal(t, l.ID(), l.Owner(), "every claim is its own owner")
		require.Positive(t, l.Fence())
		require.Equal(t, qlock.Granted, l.Via())
		require.Zero(t, l.Waited())
		require.Equal(t, lease-margin, l.Left())
		require.Equal(t, l.Fence(), n.Fence(l.Context(), door))
		require.Zero(t, n.Fence(ctx, door))
		require.Zero(t, n.Fence(l.Context(), "another"))
		info, err := n.look(ctx, door)
		require.NoError(t, err)
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
		next := n.take(nil)
		require.Greater(t, next.Fence(), l.Fence())
		release(t, next)
	})
}

func TestOneHoldsAndTheOthersWait(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		held := a.take(nil)
		first, second := b.queue(nil), a.queue(nil)
		w.Advance(time.Minute)
		testkit.RequirePending(w.T, first, second)
		require.NoError(t, held.Err())
		release(t, held)
		l := first.Granted(time.Minute)
		require.Greater(t, l.Fence(), held.Fence())
		require.Equal(t, time.Minute, l.Waited())
		testkit.RequirePending(w.T, second)
		release(t, l)
		release(t, second.Granted(time.Minute))
		w.RequireIdle()
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
		l, err := b.TryLock(context.Background(), "another", nil)
		require.NoError(t, err)
		release(t, l)
	})
}

// Whoever died in line may be more than one script drops: then somebody who lives
// stands ahead though the lock is free.
func TestTryLockBehindMoreDeadWaitersThanOneScriptDrops(t *testing.T) {
	crowd := func(w *world) (living claim) {
		w.ask(claim{node: "dead", id: "dead.0"})
		for i := range 104 {
			w.ask(claim{node: "dead", id: fmt.Sprint("dead.", i+1)})
		}
		living = claim{node: "lives", id: "lives.1", wait: time.Minute}
		require.Equal(w.T, "queued", w.ask(living).Status())
		w.Until(lease)
		return living
	}
	t.Run("the script's answer", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			crowd(w)
			r := w.ask(claim{node: "x", id: "x.1", try: true})
			require.Equal(t, "ahead", r.Status(), "the lock is free")
			require.EqualValues(t, 0, r.Int(1))
			require.EqualValues(t, 6, r.Int(2))
			require.EqualValues(t, 100, r.Int(3))
			require.EqualValues(t, 2, r.Int(4), "more is left")
		})
	})
	t.Run("the node sweeps and asks again", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			living := crowd(w)
			n := w.node()
			_, err := n.TryLock(context.Background(), door, nil)
			var refusal *berth.AcquireError
			require.ErrorAs(t, err, &refusal)
			require.Equal(t, berth.ReasonHeld, refusal.Reason, "by the one that lived")
			entries, waiters := w.held(n)
			require.Equal(t, []string{living.id}, entries)
			require.Empty(t, waiters)
		})
	})
}

func TestDoRunsUnderTheLockAndGivesItBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, other := w.node(), w.node()
		caller := berth.WithOwner(context.Background(), "me")
		for name, do := range map[string]func(context.Context, string, *qlock.LockOptions, func(context.Context) error) error{
			"Do": n.Do, "TryDo": n.TryDo,
		} {
			err := do(caller, door, nil, func(ctx context.Context) error {
				require.Equal(t, "me", berth.Owner(ctx))
				require.Positive(t, n.Fence(ctx, door))
				require.ErrorIs(t, other.TryDo(context.Background(), door, nil, func(context.Context) error { return nil }), berth.ErrBusy)
				require.ErrorIs(t, n.TryDo(ctx, door, nil, func(context.Context) error { return nil }), berth.ErrDeadlock, "the owner holds it")
				return errMine
			})
			require.Equal(t, errMine, err, name)
			w.RequireIdle()
		}
		require.PanicsWithValue(t, "mine", func() {
			_ = n.Do(caller, door, nil, func(context.Context) error { panic("mine") })
		})
		w.RequireIdle()
		ctx, cancel := context.WithCancelCause(caller)
		err := n.Do(ctx, door, nil, func(inner context.Context) error {
			cancel(errMine)
			<-inner.Done()
			return context.Cause(inner)
		})
		require.Equal(t, errMine, err, "the caller's end reaches the function; the lock had not ended")
		w.RequireIdle()
	})
}

func TestDoJoinsWhatEndedTheLock(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, other := w.node(), w.node()
		err := n.Do(context.Background(), door, nil, func(ctx context.Context) error {
			require.NoError(t, other.end(context.Background(), door))
			<-ctx.Done()
			require.ErrorIs(t, context.Cause(ctx), berth.ErrReleased)
			return errMine
		})
		require.ErrorIs(t, err, errMine)
		require.ErrorIs(t, err, berth.ErrReleased)
		require.NotErrorIs(t, err, berth.ErrNotAcquired)
	})
}

func TestAnAcquireWhoseReplyIsLostGetsOneGrant(t *testing.T) {
	for name, test := range map[string]struct {
		opts   qlock.LockOptions
		script string
	}{
		"renewing":    {qlock.LockOptions{}, "thin_acquire"},
		"without end": {qlock.LockOptions{Lease: berth.Forever}, "lock_acquire"},
	} {
		for _, fate := range []link.Fate{link.LoseReply, link.LoseRequest} {
			t.Run(name, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					n := w.node()
					n.connect()
					n.Once(test.script, fate)
					l := n.take(&test.opts)
					require.Equal(t, 2, n.Count(test.script))
					entries, _ := w.held(n)
					require.Equal(t, []string{l.ID()}, entries)
					w.honest(l)
					release(t, l)
					require.EqualValues(t, 1, w.Field("gone"), "the lost one may still come")
					w.Advance(time.Minute)
					w.sweep()
					w.RequireIdle()
				})
			})
		}
	}
}

// sweep drops what has expired.
func (w *world) sweep() {
	w.T.Helper()
	w.Call("lock_sweep", "60000", "berth:wake:", door, "looks-on", "0")
}

// honest fails unless the handle of a lock that lives ends before the server lets
// it go.
func (w *world) honest(l *qlock.Lock) {
	w.T.Helper()
	left, ok := w.LeftOf(l.ID())
	require.True(w.T, ok, "the server does not know it")
	require.NoError(w.T, l.Err())
	if l.Left() != berth.Forever {
		require.LessOrEqual(w.T, l.Left(), left-2*ms)
	}
}

func TestAReleaseWhoseReplyIsLostHasSucceeded(t *testing.T) {
	for name, fate := range map[string]link.Fate{"the reply": link.LoseReply, "the request": link.LoseRequest} {
		for script, opts := range map[string]*qlock.LockOptions{"thin_release": nil, "lock_release": {Lease: berth.Forever}} {
			t.Run(name+" of "+script, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					n := w.node()
					l := n.take(opts)
					n.Once(script, fate)
					release(t, l)
					require.GreaterOrEqual(t, n.asked("release"), 2)
					w.RequireIdle()
				})
			})
		}
	}
}

func TestCloseEndsWaitsAndGivesBackWhatIsHeld(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		a, b := w.node(), w.node()
		l := a.take(nil)
		waits := []*wait{a.queue(nil), a.queue(nil)}
		theirs := b.queue(nil)
		require.NoError(t, a.Close(ctx))
		for _, q := range waits {
			require.ErrorIs(t, q.Refused(0, berth.ReasonClosed), berth.ErrClosed)
		}
		held := theirs.Granted(0)
		require.ErrorIs(t, l.Err(), berth.ErrReleased)
		require.NoError(t, l.Release(ctx), "it has been given back")
		a.Reset()
		_, err := a.Lock(ctx, door, nil)
		require.ErrorIs(t, err, berth.ErrClosed)
		_, err = a.TryLock(ctx, door, nil)
		require.ErrorIs(t, err, berth.ErrClosed)
		require.NoError(t, a.Close(ctx), "again")
		require.Empty(t, a.Counts())
		release(t, held)
		w.RequireIdle()
	})
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

func TestReleaseAllLeavesWhatWaitsAndWhatIsDetached(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		a := w.node()
		l := a.take(nil)
		next := a.queue(nil)
		apart, err := a.Lock(ctx, "another", nil)
		require.NoError(t, err)
		_, err = apart.Detach(ctx)
		require.NoError(t, err)
		count, err := a.ReleaseAll(ctx)
		require.NoError(t, err)
		require.Equal(t, 1, count)
		require.ErrorIs(t, l.Err(), berth.ErrReleased)
		locked, err := a.locked(ctx, "another")
		require.NoError(t, err)
		require.True(t, locked)
		release(t, next.Granted(0))
	})
}
