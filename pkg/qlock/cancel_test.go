package qlock_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/qlock"
)

// requireCallerLeft fails unless the error says that the caller left, in every
// way in which one may ask.
func requireCallerLeft(t *testing.T, err error) {
	t.Helper()
	require.ErrorIs(t, err, berth.ErrNotAcquired)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, errMine)
	require.NotErrorIs(t, err, berth.ErrBusy)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
}

func TestAContextThatHasEndedSendsNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.connect() // what it says to the server then is not counted
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(errMine)
		all, _ := calls(n.Locks)
		for call, do := range all {
			requireCallerLeft(t, do(ctx, door, nil))
			require.Empty(t, n.Counts(), call)
		}
	})
}

func TestAttemptsBoundTheWaitExactlyAndNothingPolls(t *testing.T) {
	type row struct {
		opts     qlock.LockOptions
		from, to time.Duration
	}
	each(t, map[string]row{
		"without jitter":          {qlock.LockOptions{Attempts: qlock.Attempts{Max: 5, Delay: 300 * ms, Jitter: -1}}, 1200 * ms, 1200 * ms},
		"with the default pause":  {qlock.LockOptions{Attempts: qlock.Attempts{Max: 11, Jitter: -1}}, 2 * time.Second, 2 * time.Second},
		"with the default jitter": {qlock.LockOptions{Attempts: qlock.Attempts{Max: 41}}, 8 * time.Second, 9 * time.Second},
		"before MaxWait":          {qlock.LockOptions{Attempts: qlock.Attempts{Max: 2, Jitter: -1}, MaxWait: 201 * ms}, 200 * ms, 200 * ms},
	}, func(t *testing.T, w *world, test row) {
		a, b := w.node(), w.node()
		a.take(&qlock.LockOptions{Lease: berth.Forever})
		b.connect()
		start := w.Now()
		q := b.queue(&test.opts)
		<-q.Done
		err := q.Refused(q.At, berth.ReasonAttempts)
		require.ErrorIs(t, err, berth.ErrBusy)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, err.Cause)
		require.GreaterOrEqual(t, q.At-start, test.from)
		require.LessOrEqual(t, q.At-start, test.to)
		require.ErrorContains(t, err, "attempts used up after ")
		require.Equal(t, 1, b.Count("lock_acquire"), "it waits in line for the whole time")
		require.Contains(t, b.Kinds(), observe.AttemptsUsedUp)
		synctest.Wait()
		require.Empty(t, w.line(a))
	})
}

func TestASingleAttemptNeverWaits(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		b.connect()
		once := &qlock.LockOptions{Attempts: qlock.Attempts{Max: 1, Delay: time.Hour}, MaxWait: time.Hour}
		start := w.Now()
		held := a.take(once)
		before := w.Dump()
		b.Reset()
		err := b.queue(once).Refused(start, berth.ReasonAttempts)
		require.ErrorIs(t, err, berth.ErrBusy)
		require.Equal(t, 1, b.Count("lock_acquire"))
		require.Equal(t, before, w.Dump())
		require.Equal(t, 1, err.Held)
		require.Contains(t, b.Kinds(), observe.AttemptsUsedUp)
		release(t, held)
		w.RequireIdle()
	})
}

func TestDetailedErrorsTellWhoHoldsAndWhoWaits(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(node.Config{Label: "holder"}), w.node(node.Config{Label: "waiter"})
		detailed := w.with(qlock.LockOptions{DetailedErrors: true})
		held := a.takeFor("me", &qlock.LockOptions{Meta: map[string]string{"why": "a test"}})
		for range 12 {
			b.queue(nil)
		}
		line := w.line(a)
		w.Advance(1500 * ms)
		try := func(n *proc, opts *qlock.LockOptions) error {
			_, err := n.TryLock(ctx, door, opts)
			return err
		}
		in := func(n *proc, opts *qlock.LockOptions) error {
			q := n.queue(opts)
			<-q.Done
			return q.Err
		}
		for name, err := range map[string]error{
			"try, by the defaults":      try(detailed, nil),
			"try, by the option":        try(b, &qlock.LockOptions{DetailedErrors: true}),
			"a single attempt":          in(detailed, &qlock.LockOptions{Attempts: qlock.Attempts{Max: 1}}),
			"attempts":                  in(detailed, &qlock.LockOptions{Attempts: qlock.Attempts{Max: 2, Delay: ms, Jitter: -1}}),
			"timed out":                 in(b, &qlock.LockOptions{MaxWait: ms, DetailedErrors: true}),
			"deadlock":                  reenter(detailed, "me", qlock.FailDeadlock),
			"the option turned not off": try(detailed, &qlock.LockOptions{DetailedErrors: false}),
		} {
			var refusal *berth.AcquireError
			require.ErrorAs(t, err, &refusal, name)
			require.Len(t, refusal.Holders, 1, name)
			h := refusal.Holders[0]
			meta := map[string]string{"why": "a test"}
			require.Equal(t, []any{held.ID(), "me", held.Fence(), meta}, []any{h.ID, h.Owner, h.Fence, h.Meta}, name)
			require.InDelta(t, 1500*ms, h.Held, float64(5*ms), name)
			require.Len(t, refusal.Waiters, 10, name)
			for i, waiter := range refusal.Waiters {
				require.Equal(t, line[i], waiter.ID, name)
			}
			require.ErrorContains(t, err, fmt.Sprintf("; held by %s (holder) for 1.5", held.ID()), name)
			require.ErrorContains(t, err, fmt.Sprintf("; first in line is %s (waiter)", line[0]), name)
		}
		for name, err := range map[string]error{
			"not asked for": try(b, nil),
			"cancelled": func() error {
				q := detailed.queue(nil)
				q.Cancel(errMine)
				<-q.Done
				return q.Err
			}(),
		} {
			var refusal *berth.AcquireError
			require.ErrorAs(t, err, &refusal, name)
			require.Nil(t, refusal.Holders, name)
			require.Nil(t, refusal.Waiters, name)
			require.NotContains(t, err.Error(), "held by", name)
		}
	})
}

func TestDetailsThatCannotBeReadDoNotHideTheError(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.with(qlock.LockOptions{DetailedErrors: true})
		a.take(nil)
		q := b.queue(&qlock.LockOptions{MaxWait: time.Second})
		w.Until(999 * ms)
		b.Stall()
		<-q.Done
		require.ErrorIs(t, q.Err, berth.ErrBusy)
		require.LessOrEqual(t, q.At, 4*time.Second, "they take a CallTimeout at most")
		b.Flow()
	})
}
