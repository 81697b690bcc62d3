package qlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
)

// The example of docs/semantics.md#re-entry, and what else an owner's entries do to
// their deadline.
func TestTheWorkedExampleOfTheDocs(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node(node.Config{Lease: 10 * time.Second})
		enter := func(conflict qlock.Conflict, lease time.Duration) *qlock.Lock {
			return n.takeFor("order 42", &qlock.LockOptions{Conflict: conflict, Lease: lease, NoRenew: true})
		}
		var outer, a, b, c *qlock.Lock
		for _, step := range []struct {
			at      time.Duration
			do      func() error
			entries int
			ends    time.Duration
		}{
			{0, func() error { outer = enter(qlock.FailDeadlock, 10*time.Second); return nil }, 1, 10 * time.Second},
			{2 * time.Second, func() error { a = enter(qlock.WorkThrough, time.Hour); return nil }, 2, 10 * time.Second},
			{3 * time.Second, func() error { b = enter(qlock.ExtendAndWorkThrough, 5*time.Second); return nil }, 3, 15 * time.Second},
			{6 * time.Second, func() error { return b.Release(ctx) }, 2, 13 * time.Second},
			{7 * time.Second, func() error { c = enter(qlock.ExtendAndWorkThrough, 4*time.Second); return nil }, 3, 17 * time.Second},
			{12 * time.Second, func() error { return c.Release(ctx) }, 2, 17 * time.Second},
			{13 * time.Second, func() error { return outer.Release(ctx) }, 1, 17 * time.Second},
			{14 * time.Second, func() error { return a.Renew(ctx) }, 1, 24 * time.Second},
			{15 * time.Second, func() error { return a.Extend(ctx, 3*time.Second) }, 1, 27 * time.Second},
			{16 * time.Second, func() error { return a.Release(ctx) }, 0, 16 * time.Second},
		} {
			w.Until(step.at)
			require.NoError(t, step.do(), step.at)
			w.Advance(0)
			info := n.info()
			require.Len(t, info.entries, step.entries, step.at)
			require.Equal(t, step.ends, w.Now()+info.Left, "at %s", step.at)
			if step.entries > 0 && step.at > 7*time.Second {
				require.Equal(t, berth.LockInfo{
					Owner: "order 42", Claim: info.Claim, Label: info.Label, Left: info.Left, Reentries: 3, WorkedThroughAt: w.Began.Add(2 * time.Second).Local(),
					Extended: 9 * time.Second, LastLease: 4 * time.Second, ExtendedAt: w.Began.Add(7 * time.Second).Local(),
				}, info.LockInfo)
			}
		}
	})
}

// The table of conflict strategies there.
func TestTheConflictTableOfTheDocs(t *testing.T) {
	const more = 2 * time.Second // E
	for _, outermost := range []struct {
		is       string
		opts     qlock.LockOptions
		detached bool
		waits    bool          // Wait stands in line though it has no end
		works    time.Duration // what is left when an entry works through,
		extends  time.Duration // and when one extends
	}{
		{"renews", qlock.LockOptions{}, false, false, lease, lease + more},
		{"renews, with MaxHold", qlock.LockOptions{MaxHold: lease + ms}, false, true, lease, lease + ms},
		{"NoRenew", qlock.LockOptions{NoRenew: true}, false, true, lease, lease + more},
		{"Forever", qlock.LockOptions{Lease: berth.Forever}, false, false, berth.Forever, berth.Forever},
		{"Forever, with MaxHold", qlock.LockOptions{Lease: berth.Forever, MaxHold: time.Minute}, false, true, time.Minute, time.Minute},
		{"detached", qlock.LockOptions{}, true, true, lease, lease + more},
		{"detached, Forever", qlock.LockOptions{Lease: berth.Forever}, true, false, berth.Forever, berth.Forever},
	} {
		inWorldOf(t, outermost.is, func(t *testing.T, w *world) {
			n := w.node()
			w.Advance(time.Second)
			ctx := berth.WithOwner(context.Background(), "order 42")
			outer := n.takeFor("order 42", &outermost.opts)
			within, cancel := outer.Within(context.Background())
			defer cancel()
			owned := map[string]context.Context{"given": ctx, "Context": outer.Context(), "Within": within}
			acquires := []func(context.Context, string, *qlock.LockOptions) (*qlock.Lock, error){n.Lock, n.TryLock}
			if outermost.detached {
				require.NoError(t, testkit.Second(outer.Detach(ctx)))
				owned = map[string]context.Context{"given": ctx} // the others have ended
				acquires = acquires[:1]                          // nothing is given back
			}
			enter := func(conflict qlock.Conflict, via qlock.Via, left time.Duration) {
				for how, ctx := range owned {
					for _, acquire := range acquires {
						inner := w.got(acquire(ctx, door, &qlock.LockOptions{Conflict: conflict, Lease: more}))
						require.Equal(t, []any{via, outer.Fence(), "order 42"}, []any{inner.Via(), inner.Fence(), inner.Owner()}, how)
						require.Equal(t, left, n.info().Left, conflict)
						release(t, inner)
					}
				}
			}
			enter(qlock.WorkThrough, qlock.Reentered, outermost.works)
			enter(qlock.ExtendAndWorkThrough, qlock.ReenteredExtended, outermost.extends)

			for how, ctx := range owned {
				err := testkit.Second(n.Lock(ctx, door, nil))
				require.ErrorIs(t, err, berth.ErrDeadlock, how)
				require.ErrorIs(t, err, berth.ErrNotAcquired)
				require.NotErrorIs(t, err, berth.ErrBusy)
				_ = refused(t, berth.ReasonHeld, testkit.Second(n.TryLock(ctx, door, &qlock.LockOptions{Conflict: qlock.Wait})), how)
			}
			_, err := n.Lock(ctx, door, &qlock.LockOptions{Conflict: qlock.Wait, MaxWait: ms})
			require.ErrorIs(t, err, berth.ErrBusy)
			endless := n.queueOn(ctx, &qlock.LockOptions{Conflict: qlock.Wait})
			require.Equal(t, outermost.waits, endless.Pending())
			endless.Cancel(nil)
			<-endless.Done
			if !outermost.waits {
				require.ErrorIs(t, endless.Err, berth.ErrDeadlock)
			}
			w.Advance(0)
			entries, waiters := w.held(n)
			require.Equal(t, []string{outer.ID()}, entries)
			require.Empty(t, waiters)
		})
	}
}

// The row about a process that ends, and has entries with others, there.
func TestAProcessEndsThatHasEntriesWithOthers(t *testing.T) {
	work := &qlock.LockOptions{Conflict: qlock.WorkThrough}
	entries := func(t *testing.T, n *proc) int {
		t.Helper()
		info := n.info()
		return len(info.entries)
	}
	each(t, map[string]bool{
		"the outermost, which renewed": false, "the outermost, which did not": true,
	}, func(t *testing.T, w *world, noRenew bool) {
		a, b := w.node(), w.node()
		a.takeFor("order 42", &qlock.LockOptions{NoRenew: noRenew})
		inner := b.takeFor("order 42", work)
		a.Die()
		w.Advance(lease)
		want := berth.ErrLost
		if noRenew {
			want = berth.ErrExpired
		}
		require.ErrorIs(t, inner.Err(), want)
		require.Zero(t, entries(t, b))
	})
	inWorldOf(t, "another", func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		outer := a.takeFor("order 42", nil)
		b.takeFor("order 42", work)
		b.Die()
		w.Advance(time.Minute)
		require.NoError(t, outer.Err())
		require.Equal(t, 2, entries(t, a), "it lasts as long as the others,")
		require.NoError(t, outer.Release(context.Background()))
		require.Equal(t, 1, entries(t, a), "and for what is left of the common deadline")
		w.Advance(lease)
		require.Zero(t, entries(t, a))
	})
}

// Where nothing is given back, there.
func TestWhatIsNotGivenBack(t *testing.T) {
	const more = 2 * time.Second
	extend := &qlock.LockOptions{Conflict: qlock.ExtendAndWorkThrough, Lease: more}
	each(t, map[string]func(t *testing.T, a, b *proc, inner *qlock.Lock){
		"an entry of another process stays": func(t *testing.T, _, b *proc, inner *qlock.Lock) {
			b.again("order 42")
			require.NoError(t, inner.Release(context.Background()))
		},
		"the entry was detached": func(t *testing.T, a, _ *proc, inner *qlock.Lock) {
			token, err := inner.Detach(context.Background())
			require.NoError(t, err)
			resumed := a.w.got(a.Resume(context.Background(), token))
			require.NoError(t, resumed.Release(context.Background()))
		},
	}, func(t *testing.T, w *world, release func(t *testing.T, a, b *proc, inner *qlock.Lock)) {
		a, b := w.node(), w.node()
		w.Advance(time.Second)
		outer := a.takeFor("order 42", &qlock.LockOptions{NoRenew: true})
		inner := a.takeFor("order 42", extend)
		release(t, a, b, inner)
		w.requireLeft(lease+more, outer)
	})
}

func TestAnEntryThatIsEndedByForceGivesNothingBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		outer := a.takeFor("order 42", &qlock.LockOptions{NoRenew: true})
		inner := b.takeFor("order 42", &qlock.LockOptions{Conflict: qlock.ExtendAndWorkThrough, Lease: time.Second})
		count, err := a.Operator().Release(context.Background(), berth.Target{Node: b.ID()})
		require.NoError(t, err)
		require.Equal(t, 1, count)
		w.requireLeft(lease+time.Second, outer)
		w.Advance(lease)
		require.ErrorIs(t, inner.Err(), berth.ErrReleased)
	})
}

func TestSweepDropsWhoHasDied(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b, operator := w.node(), w.node(), w.node()
		a.take(&qlock.LockOptions{NoRenew: true, Lease: time.Hour})
		dead := b.queue(nil)
		a.Die()
		b.Die()
		w.Advance(lease)
		for _, want := range []int{1, 0} {
			count, err := operator.Operator().Sweep(context.Background(), keyspace.Lock)
			require.NoError(t, err)
			require.Equal(t, want, count)
		}
		dead.Cancel(nil)
		<-dead.Done
	})
}
