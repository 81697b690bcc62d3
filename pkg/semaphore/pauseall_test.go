package semaphore_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

// pauseAll pauses all names, and returns how many that were.
func (n *proc) pauseAll(lasts time.Duration) int {
	n.w.T.Helper()
	all, err := n.Operator().PauseAll(context.Background(), lasts, "moving house")
	require.NoError(n.w.T, err)
	require.Zero(n.w.T, all.Unread)
	return all.Names
}

func TestAPauseOfAllNamesGrantsNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		n, ops := w.node(), w.node()
		p := n.take(1, nil)
		waits := n.queue(1, nil)
		start := w.Now()
		require.Equal(t, 1, ops.pauseAll(10*time.Minute))
		require.Equal(t, start+7*time.Second, w.Now(), "all have heard, and what they had asked for is answered")

		require.NoError(t, p.Release(ctx))
		fresh := n.queueOn(ctx, n.on("new"), nil)
		other := w.node().queueOn(ctx, n.on("newer"), nil)
		_, err := n.on("newest").TryAcquire(ctx, nil)
		require.ErrorIs(t, err, berth.ErrBusy)
		var refused *berth.AcquireError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, berth.ReasonPaused, refused.Reason)
		require.Equal(t, "moving house", refused.Pause.Reason)
		require.InDelta(t, 10*time.Minute-7*time.Second, refused.Pause.Left, float64(ms))
		require.NotContains(t, w.Keys(), "berth:sem:{newest}:state", "who tries makes no name")
		w.Until(start + 10*time.Minute - time.Second)
		testkit.RequirePending(t, waits, fresh, other)
		_, err = n.on("new").TryAcquire(ctx, nil)
		require.ErrorIs(t, err, berth.ErrBusy)
		w.Advance(2 * time.Second)
		for _, q := range []*wait{waits, fresh, other} {
			q.GrantedWithin(start+10*time.Minute, 100*ms)
		}
	})
}

// An operator may set a name apart.
func TestANameIsUnpausedWhileAllArePaused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		n := w.node()
		w.node().pauseAll(time.Hour)
		q := n.queueOn(ctx, n.on("apart"), nil)
		require.True(t, q.Pending())
		require.NoError(t, w.node().Operator().Unpause(ctx, keyspace.Sem, "apart"))
		synctest.Wait()
		require.False(t, q.Pending())
		for range 5 {
			w.Advance(6 * time.Second) // each claim is a first contact again
			_, err := n.on("apart").TryAcquire(ctx, nil)
			require.ErrorIs(t, err, berth.ErrBusy)
			require.NoError(t, q.Got.Release(ctx))
			q = n.queueOn(ctx, n.on("apart"), nil)
			require.False(t, q.Pending())
		}
	})
}

func TestTheEndOfAPauseOfAllNames(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		n, ops := w.node(), w.node()
		require.NoError(t, ops.Operator().Pause(ctx, keyspace.Sem, "mine", 2*time.Hour, "mine"))
		ops.pauseAll(time.Hour)
		all, mine := n.queueOn(ctx, n.on("all"), nil), n.queueOn(ctx, n.on("mine"), nil)
		testkit.RequirePending(t, all, mine)
		ended, err := ops.Operator().UnpauseAll(ctx)
		require.NoError(t, err)
		require.Equal(t, berth.PausedAll{Names: 1}, ended)
		require.False(t, all.Pending())
		require.True(t, mine.Pending(), "what an operator paused by itself")
		n.take(1, nil)
	})
}

// A name has its own pause beside that of all names: each lasts without the other, whichever was set first.
func TestTheOwnPauseOfANameLastsBesideThatOfAll(t *testing.T) {
	for name, c := range map[string]struct {
		own          time.Duration // all are paused for 2 min
		later, ended bool          // own is set while all are paused; that of all is ended then
	}{
		"a shorter one": {own: time.Minute}, "a shorter one alone": {own: time.Minute, ended: true},
		"a longer one": {own: 3 * time.Minute}, "a longer one alone": {own: 3 * time.Minute, ended: true},
		"a later, shorter one": {own: time.Minute, later: true}, "a later, shorter one alone": {time.Minute, true, true},
		"a later, longer one": {own: 3 * time.Minute, later: true}, "a later, longer one alone": {3 * time.Minute, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n, ops := w.node(), w.node()
				held, q := n.take(1, nil), n.queue(1, nil)
				end := w.Now() + c.own
				if !c.later {
					ops.pause(c.own)
				}
				ops.pauseAll(2 * time.Minute)
				require.NoError(t, held.Release(context.Background()))
				if c.later {
					end = w.Now() + c.own
					ops.pause(c.own)
				}
				if !c.ended {
					q.GrantedWithin(max(end, 2*time.Minute), 100*ms)
					return
				}
				ended, err := ops.Operator().UnpauseAll(context.Background())
				require.NoError(t, err)
				require.Zero(t, ended, "it is paused yet")
				_, err = n.gpu(1).TryAcquire(context.Background(), nil)
				require.ErrorContains(t, err, "migration")
				q.GrantedWithin(end, 100*ms)
			})
		})
	}
}

func TestARepeatOfAPauseOfAllNamesSetsAnotherEnd(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, ops := w.node(), w.node()
		ops.pauseAll(2 * time.Hour)
		q := n.queue(1, nil)
		start := w.Now()
		require.Equal(t, 1, ops.pauseAll(time.Minute))
		q.GrantedWithin(start+time.Minute, 100*ms)
	})
}

// The second pass of a pause of all names comes when another call has ended that.
func TestAPauseOfAllNamesThatWasOvertakenPausesNoMore(t *testing.T) {
	for name, over := range map[string]func(ops *node.Operator) error{
		"unpaused": func(ops *node.Operator) error {
			return testkit.Second(ops.UnpauseAll(context.Background()))
		},
		"paused: again": func(ops *node.Operator) error {
			return testkit.Second(ops.PauseAll(context.Background(), 20*time.Second, "again"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n, ops, other := w.node(), w.node(), w.node()
				held := n.take(1, nil)
				q := n.queue(1, nil)
				first, second := make(chan error, 1), make(chan error, 1)
				go func() { first <- testkit.Second(ops.Operator().PauseAll(context.Background(), time.Hour, "first")) }()
				w.Advance(time.Second)
				require.NotZero(t, w.Field("pause"))
				go func() { second <- over(other.Operator()) }()
				w.Advance(6 * time.Second)
				var stale *berth.StaleError
				require.ErrorAs(t, <-first, &stale)
				require.Equal(t, name, stale.Changed)
				require.NoError(t, held.Release(context.Background()))
				ends := w.Now()
				if name != "unpaused" {
					ends = 21 * time.Second
				}
				q.GrantedWithin(ends, 100*ms)
				require.NoError(t, <-second)
			})
		})
	}
}

// A pause that is over when all have heard is not set anew.
func TestAShortPauseOfAllNamesEndsOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.take(1, nil)
		n.queue(1, nil)
		ops := w.node()
		require.Equal(t, 1, ops.pauseAll(5*time.Second))
		require.Equal(t, 1, ops.Count("semaphore_pause"))
	})
}

func TestAPauseOfAllNamesSaysWhichItCouldNotAsk(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, ops := w.node(), w.node()
		for i := range 4 { // in fat form
			_, err := n.on(fmt.Sprintf("s%03d", i)).TryAcquire(context.Background(), &semaphore.AcquireOptions{Lease: time.Hour})
			require.NoError(t, err)
		}
		ops.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "semaphore_pause" {
				return link.Refuse("NOPERM no permissions")
			}
			return link.Pass
		})
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		all, err := ops.Operator().PauseAll(ctx, time.Hour, "")
		require.Equal(t, berth.PausedAll{Unread: 4}, all)
		require.ErrorContains(t, err, "NOPERM")
		require.Regexp(t, `these names could not be asked: "s00\d", "s00\d", "s00\d", "s00\d"$`, err.Error())
	})
}

// What the sweep behind it leaves to those who wait is unpaused all the same.
func TestANameThatCannotBeSweptIsNotUnread(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const many = 150 // more than a script grants at a time
		n, ops := w.node(), w.node()
		ops.pauseAll(time.Hour)
		for range many {
			n.queue(many, nil)
		}
		ops.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "semaphore_sweep" {
				return link.Refuse("NOPERM no permissions")
			}
			return link.Pass
		})
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		ended, err := ops.Operator().UnpauseAll(ctx)
		require.ErrorContains(t, err, "NOPERM")
		require.Equal(t, berth.PausedAll{Names: 1}, ended)
	})
}

// Nobody waits any more for a name that was paused on contact.
func TestTheEndOfAPauseOfAllNamesEndsThatOfAnIdleName(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, ops := w.node(), w.node()
		ops.pauseAll(time.Hour)
		q := n.queue(1, nil)
		q.Cancel(nil)
		<-q.Done
		ended, err := ops.Operator().UnpauseAll(context.Background())
		require.NoError(t, err)
		require.Equal(t, berth.PausedAll{Names: 1}, ended)
		n.take(1, nil)
	})
}

// A claim is not asked for as long as its name could not be paused.
func TestAFirstContactThatFailsIsRepeated(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		w.node().pauseAll(time.Hour)
		n.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "semaphore_pause" {
				return link.Refuse(readonly)
			}
			return link.Pass
		})
		q := n.queue(1, nil)
		w.Advance(3 * time.Second)
		require.True(t, q.Pending())
		require.Zero(t, n.Scripts()["thin_acquire"]+n.Scripts()["semaphore_acquire"])
		n.OnCommand(nil)
		w.Advance(3 * time.Second)
		require.True(t, q.Pending(), "it stands in line, in a name that is paused")
		require.Equal(t, 1, w.stats().Waiting)
	})
}

// A failover that loses the pause of a name loses no pause of all names.
func TestWhoIsRestoredIsRestoredToAPausedName(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		w.node().pauseAll(time.Hour)
		q := n.queue(1, nil)
		w.Do("DEL", stateKey, lineKey)
		w.Advance(2 * lease)
		require.True(t, q.Pending())
		require.Equal(t, 1, w.stats().Waiting)
		q.Cancel(nil)
	})
}

func TestCheckGoesPastAPauseOfAllNames(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node(node.Config{AllowEviction: true})
		n.take(1, nil)
		w.node().pauseAll(time.Hour)
		_, err := n.Check(context.Background())
		require.NoError(t, err)
		require.Zero(t, n.Count("semaphore_pause"))
	})
}

func TestAPauseOfAllNamesEndsWithItsCaller(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		_, err := w.node().Operator().PauseAll(ctx, time.Hour, "")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.True(t, w.node().queue(1, nil).Pending(), "who comes later hears all the same")
		for _, lasts := range []time.Duration{0, -1, 367 * 24 * time.Hour, 1} {
			_, err := w.node().Operator().PauseAll(context.Background(), lasts, "")
			require.ErrorIs(t, err, berth.ErrInvalidConfig)
		}
	})
}
