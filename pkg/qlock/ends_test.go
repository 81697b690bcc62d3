package qlock_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/qlock"
)

// The table of the docs on how a hold ends, as far as it is about locks.
func TestHowALockEnds(t *testing.T) {
	plays := map[string]func(w *world, n *proc) *qlock.Lock{
		"Release of one of several entries": func(w *world, n *proc) *qlock.Lock {
			n.takeFor("me", nil)
			l := n.again("me")
			release(w.T, l)
			return l
		},
		"Do or DoAll returns": func(w *world, n *proc) *qlock.Lock {
			set := w.gotAll(n.LockAll(ctx, []string{door}, nil)) // as DoAll does
			require.NoError(w.T, set.Release(ctx))
			require.NoError(w.T, n.Do(ctx, door, nil, func(context.Context) error { return nil }))
			return set.Locks()[0]
		},
		"its MaxHold is over":              func(_ *world, n *proc) *qlock.Lock { return n.take(&qlock.LockOptions{MaxHold: time.Second}) },
		"its lease is over, under NoRenew": func(_ *world, n *proc) *qlock.Lock { return n.take(&qlock.LockOptions{NoRenew: true}) },
		"its node was silent in its swarm, or was found dead": func(w *world, n *proc) *qlock.Lock {
			require.NoError(w.T, n.Swarm().Start(ctx))
			l := n.take(hour())
			n.condemn()
			require.Zero(w.T, n.Fence(l.Context(), door), "it is the fence of nothing that is held")
			return l
		},
	}
	for how, ends := range map[string]func(w *world, n *proc, l *qlock.Lock){ // of a plain hold
		"Release of its handle": func(w *world, _ *proc, l *qlock.Lock) { release(w.T, l) },
		"Close of its node":     func(w *world, n *proc, _ *qlock.Lock) { require.NoError(w.T, n.Close(ctx)) },
		"ReleaseAll":            func(w *world, n *proc, _ *qlock.Lock) { require.NoError(w.T, testkit.Second(n.ReleaseAll(ctx))) },
		"Detach; that somebody resumes it later is no news to the handle": func(w *world, _ *proc, l *qlock.Lock) {
			_ = w.node().resume(detach(w.T, l))
		},
		"another handle of this process resumes it, after a Detach that ended nothing": func(w *world, n *proc, l *qlock.Lock) {
			w.Advance(0) // nothing else is under way that the break would hit
			n.Once("lock_renew", link.LoseReply)
			require.Error(w.T, testkit.Second(l.Detach(ctx)))
			w.Advance(0) // the node knows of the break
			_ = n.resume(berth.Token{Kind: "lock", Namespace: "berth", Name: door, Claim: l.ID(), Node: n.ID(), Fence: l.Fence()})
		},
		"Operator.Release by name": func(w *world, _ *proc, _ *qlock.Lock) { require.NoError(w.T, w.node().end(ctx, door)) },
		"Operator.Release by node": func(w *world, n *proc, _ *qlock.Lock) {
			require.NoError(w.T, testkit.Second(w.node().Operator().Release(ctx, berth.Target{Node: n.ID()})))
		},
		"its lease is over, no renewal was answered in time": func(_ *world, n *proc, _ *qlock.Lock) { n.Cut() },
		"its lease is over, a newer release wrote the name and no renewal was taken: event renew_refused, level error": func(w *world, n *proc, _ *qlock.Lock) {
			w.Do("SET", stateKey, "f4 and more")
			w.Advance(lease / 2)
			told := n.Told(observe.RenewRefused)
			require.Len(w.T, told, 1, "with the first refusal")
			require.Equal(w.T, slog.LevelError, told[0].Kind.Level())
			require.ErrorIs(w.T, told[0].Err, berth.ErrIncompatible)
			require.Positive(w.T, told[0].Left)
		},
		"the server has forgotten it: a flush, a failover": func(w *world, _ *proc, _ *qlock.Lock) { w.Do("FLUSHALL") },
		"Release finds that it is not there any more": func(w *world, _ *proc, l *qlock.Lock) {
			w.Do("FLUSHALL")
			require.ErrorIs(w.T, l.Release(ctx), berth.ErrLost)
		},
	} {
		plays[how] = func(w *world, n *proc) *qlock.Lock {
			l := n.take(nil)
			ends(w, n, l)
			return l
		}
	}
	rows := testkit.Ends(t, "../..", "TestHowALockEnds")
	require.ElementsMatch(t, slices.Collect(maps.Keys(rows)), slices.Collect(maps.Keys(plays)), "each row is played")
	for how, row := range rows {
		inWorldOf(t, how, func(t *testing.T, w *world) {
			n := w.node(node.Config{Retry: berth.Retry{Attempts: 1}, Swarm: node.SwarmConfig{FlushEvery: -1}})
			l := plays[how](w, n)
			w.Advance(2 * lease)
			want := map[string]error{
				"ErrReleased": berth.ErrReleased, "ErrExpired": berth.ErrExpired, "ErrLost": berth.ErrLost,
				"ErrLost, ErrIncompatible": berth.ErrIncompatible, "ErrReleased; Release returns ErrLost": berth.ErrReleased,
			}[row.Err]
			require.ErrorIs(t, l.Err(), want)
			require.ErrorIs(t, context.Cause(l.Context()), want)
			require.Equal(t, strings.HasPrefix(row.Err, "ErrLost"), errors.Is(l.Err(), berth.ErrLost))
			var end *berth.EndError
			require.ErrorAs(t, l.Err(), &end)
			var told []observe.Kind
			for _, e := range n.Events() {
				ends := []observe.Kind{observe.Released, observe.Detached, observe.ReleasedByOther, observe.Expired, observe.Lost, observe.ReentryEnded}
				if e.Claim == l.ID() && slices.Contains(ends, e.Kind) {
					told = append(told, e.Kind)
				}
			}
			require.Equal(t, []observe.Kind{observe.Kind(row.Event)}, told)
			require.Equal(t, row.Level, strings.ToLower(told[0].Level().String()))
		})
	}
}

// A sum of extensions that nobody can count any more must not end what it was to keep.
func TestAnExtensionBeyondAllTimeIsRefused(t *testing.T) {
	const year = 365 * 24 * time.Hour
	each(t, map[string]*qlock.LockOptions{
		"renews": nil, "NoRenew": {NoRenew: true},
	}, func(t *testing.T, w *world, opts *qlock.LockOptions) {
		ctx, n := context.Background(), w.node()
		l := n.take(opts)
		require.NoError(t, l.Extend(ctx, 190*year))
		synctest.Wait() // a heartbeat that the extension has set off
		before, left := w.Dump(), l.Left()
		n.Reset()
		err := l.Extend(ctx, 190*year)
		require.ErrorIs(t, err, berth.ErrInvalidConfig)
		require.ErrorContains(t, err, "by")
		require.Empty(t, n.Counts(), "nothing is sent")
		require.Equal(t, before, w.Dump())
		require.Equal(t, left, l.Left())
		w.Advance(time.Minute)
		require.NoError(t, l.Err())
		w.honest(l)

		set := w.gotAll(n.LockAll(ctx, []string{"a", "b"}, nil))
		require.NoError(t, set.Locks()[1].Extend(ctx, 190*year))
		left = set.Locks()[0].Left()
		require.ErrorIs(t, set.Extend(ctx, 100*year), berth.ErrInvalidConfig)
		require.LessOrEqual(t, set.Locks()[0].Left(), left, "none of them is extended")
		require.NoError(t, set.Err())
	})
}

// An operator, and entries that extend, may move an end further off than a process can
// count. To the holder that is no end.
func TestAnEndFurtherOffThanAllTimeEndsNothing(t *testing.T) {
	const year = 365 * 24 * time.Hour
	inWorld(t, func(t *testing.T, w *world) {
		ctx, n := context.Background(), w.node()
		l := n.take(nil)
		for range 2 {
			require.NoError(t, w.node().extend(ctx, door, 200*year))
		}
		w.Advance(time.Minute)
		require.NoError(t, l.Err())
		release(t, l)

		outer := n.takeFor("me", nil)
		n.takeFor("me", extend(150*year))
		n.takeFor("me", extend(150*year))
		w.Advance(time.Minute)
		require.NoError(t, outer.Err())
	})
}

// A holder that overran its lease: whatever it calls, its successor keeps what it has, to the last byte of its record.
func TestAHolderThatOverranItsLeaseCannotTouchItsSuccessor(t *testing.T) {
	type row struct {
		opts  qlock.LockOptions
		ended error
	}
	each(t, map[string]row{
		"a fixed lease":    {qlock.LockOptions{NoRenew: true, Lease: time.Second}, berth.ErrExpired},
		"a renewing lease": {qlock.LockOptions{Lease: time.Second}, berth.ErrLost},
		"a maximum hold":   {qlock.LockOptions{MaxHold: time.Second}, berth.ErrExpired},
	}, func(t *testing.T, w *world, row row) {
		a, b := w.node(), w.node()
		for _, successorOf := range []string{"other", "me"} {
			old := a.takeFor("me", &row.opts)
			q := b.queueOn(berth.WithOwner(ctx, successorOf), &qlock.LockOptions{
				NoRenew: true, Lease: time.Minute, Conflict: qlock.Wait, MaxWait: time.Hour,
			})
			if errors.Is(row.ended, berth.ErrLost) {
				a.Stall()
			}
			<-q.Done
			require.NoError(t, q.Err)
			successor := q.Got
			a.Flow()
			w.Advance(100 * ms)
			before, left := w.Dump(), successor.Left()
			for call, do := range map[string]func() error{
				"Renew":   func() error { return old.Renew(ctx) },
				"Extend":  func() error { return old.Extend(ctx, time.Second) },
				"Detach":  func() error { return testkit.Second(old.Detach(ctx)) },
				"Err":     old.Err,
				"Release": func() error { return old.Release(ctx) },
			} {
				err := do()
				require.ErrorIs(t, err, row.ended, call)
				require.ErrorIs(t, err, berth.ErrNotHeld, call)
				synctest.Wait()
				require.Equal(t, before, w.Dump(), call)
			}
			// What it sent before it knew comes late.
			for _, mode := range []string{"beat", "renew", "detach", "extend 60000 late"} {
				r := w.Call("lock_renew", "60000", "berth:wake:", door, a.ID(), old.ID(), mode)
				require.Equal(t, "unknown", r.Str(4), mode)
				require.Equal(t, before, w.Dump(), mode)
			}
			r := w.Releases("lock", a.ID(), old.ID(), 0)
			require.Equal(t, "not_held", r.Status())
			// Nor under the successor's name, by another node.
			r = w.Releases("lock", a.ID(), successor.ID(), 0)
			require.Equal(t, "taken", r.Status())
			r = w.Call("lock_renew", "60000", "berth:wake:", door, a.ID(), successor.ID(), "extend 60000 late")
			require.Equal(t, "taken", r.Str(4))
			require.Equal(t, before, w.Dump())
			require.Equal(t, left, successor.Left())
			w.honest(successor)
			release(t, successor)
			w.RequireIdle()
		}
	})
}
