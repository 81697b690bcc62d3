package semaphore_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/pkg/semaphore"
)

// paused is how long most pauses of these tests last.
const paused = 10 * lease

func (n *proc) pause(lasts time.Duration) {
	n.w.T.Helper()
	require.NoError(n.w.T, n.Operator().Pause(context.Background(), keyspace.Sem, gpu, lasts, "migration"))
}

func (n *proc) unpause() {
	n.w.T.Helper()
	require.NoError(n.w.T, n.Operator().Unpause(context.Background(), keyspace.Sem, gpu))
}

// decided has a node pause the name, or end that, and returns what gives the server a copy of that call.
func (w *world) decided(n *proc, decide func()) (copied func() scriptkit.Reply) {
	w.T.Helper()
	var args []string
	n.OnCommand(func(c link.Command) link.Fate {
		if c.Name == "semaphore_pause" {
			args = c.Args[2+2:] // behind the text, and the Redis keys with their number
		}
		return link.Pass
	})
	decide()
	n.OnCommand(nil)
	return func() scriptkit.Reply { return w.Call("semaphore_pause", args...) }
}

// Whatever frees a place of a paused name, nobody gets it before the end; and then without a call.
func TestAPausedNameGrantsNothing(t *testing.T) {
	for name, frees := range map[string]func(w *world, n *proc, held *semaphore.Permit){
		"a release": func(w *world, _ *proc, held *semaphore.Permit) {
			require.NoError(w.T, held.Release(context.Background()))
		},
		"an end by force": func(w *world, n *proc, held *semaphore.Permit) {
			require.NoError(w.T, n.end(held.ID()))
		},
		"more capacity": func(w *world, n *proc, _ *semaphore.Permit) { require.NoError(w.T, n.resize(4)) },
		"an expiry": func(w *world, n *proc, held *semaphore.Permit) {
			require.NoError(w.T, testkit.Second(held.Detach(context.Background())))
			w.Advance(lease)
			dropped, err := n.Operator().Sweep(context.Background(), keyspace.Sem, gpu)
			require.NoError(w.T, err)
			require.Equal(w.T, 1, dropped)
		},
		"whoever is first leaves": func(w *world, n *proc, held *semaphore.Permit) {
			heavy := n.queue(2, &semaphore.AcquireOptions{Weight: 2, Priority: 5})
			require.NoError(w.T, held.Release(context.Background()))
			heavy.Cancel(nil)
			<-heavy.Done
		},
		"a later pause": func(w *world, n *proc, held *semaphore.Permit) {
			require.NoError(w.T, held.Release(context.Background()))
			w.Advance(lease / 2)
			n.pause(paused - lease/2)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(_ *testing.T, w *world) {
				n, ops := w.node(), w.node()
				held, other := n.take(2, nil), n.take(2, nil)
				q := n.queue(2, nil)
				ops.pause(paused)
				frees(w, ops, held)
				w.Until(paused - ms)
				testkit.RequirePending(w.T, q)
				require.NoError(w.T, other.Err(), "it renews")
				q.GrantedBy(paused)
			})
		})
	}
}

func TestACallThatDoesNotWaitIsToldThePause(t *testing.T) {
	inWorld(t, func(_ *testing.T, w *world) {
		n := w.node()
		w.Advance(lease)
		n.pause(paused)
		w.Advance(lease)
		_, err := n.gpu(1).TryAcquire(context.Background(), nil)
		requireRefused(w.T, err, berth.AcquireError{Reason: berth.ReasonPaused, Capacity: 1, Pause: &berth.Pause{
			Left: paused - lease, Since: w.Began.Add(lease), Reason: "migration",
		}})
		require.ErrorIs(w.T, err, berth.ErrBusy)
		require.ErrorContains(w.T, err, `"gpu" not acquired: paused for `+(paused-lease).String()+": migration")
		_, err = n.gpu(1).TryAcquire(context.Background(), &semaphore.AcquireOptions{Weight: 2})
		require.ErrorContains(w.T, err, "too heavy", "what can never be is said first")
	})
}

func TestThePauseOfANameLasts(t *testing.T) {
	for name, begin := range map[string]func(n *proc){
		"that nobody has used": func(*proc) {},
		"that is idle":         func(n *proc) { require.NoError(n.w.T, n.take(1, nil).Release(context.Background())) },
		"with a thin hold":     func(n *proc) { n.take(1, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(_ *testing.T, w *world) {
				n, ops := w.node(), w.node()
				begin(n)
				ops.pause(2 * time.Hour)
				require.NotEmpty(w.T, w.Keys())
				require.GreaterOrEqual(w.T, w.Expiry(), 2*time.Hour+time.Minute)
				require.LessOrEqual(w.T, w.Expiry(), 2*time.Hour+time.Minute+time.Second)
				for _, h := range w.Holders() {
					require.Equal(w.T, lease, h.Left, "the hold goes along")
				}
				q := n.queue(1, nil)
				w.Advance(75 * time.Second) // longer than a name has to be calm, to be thin again
				q.Cancel(nil)
				<-q.Done
				w.Advance(ms)
				require.False(w.T, w.Thin())
				ops.unpause()
				if w.Field("used") == 0 { // else that has it stay for as long
					require.LessOrEqual(w.T, w.Expiry(), w.Now()+2*time.Minute+time.Second)
				}
			})
		})
	}
}

func TestAnUnpauseHandsOnInItsRun(t *testing.T) {
	inWorld(t, func(_ *testing.T, w *world) {
		n, ops := w.node(), w.node()
		w.Advance(lease)
		ops.pause(paused)
		q, second := n.queue(1, nil), n.queue(1, nil)
		w.Advance(lease)
		testkit.RequirePending(w.T, q)
		ops.unpause()
		require.NoError(w.T, q.Granted(2*lease).Release(context.Background()))
		second.Granted(2 * lease)
		ops.pause(time.Second)
		ops.pause(3 * time.Second) // further off
		ops.pause(2 * time.Second) // and nearer
		require.NoError(w.T, second.Got.Release(context.Background()))
		n.queue(1, nil).GrantedBy(2*lease + 2*time.Second)
	})
}

// A waiter hears of a pause that ends before its next heartbeat.
func TestAShortPauseNeedsNoHeartbeat(t *testing.T) {
	inWorld(t, func(_ *testing.T, w *world) {
		n, ops := w.node(), w.node()
		held := n.take(1, nil)
		q := n.queue(1, nil)
		ops.pause(50 * ms)
		require.NoError(w.T, held.Release(context.Background()))
		q.GrantedBy(50 * ms)
	})
}

func TestALateCopyOfAPauseOrAnUnpauseIsStale(t *testing.T) {
	inWorld(t, func(_ *testing.T, w *world) {
		a, b := w.node(), w.node()
		first := w.decided(a, func() { a.pause(paused) })
		require.Equal(w.T, "paused", func() string { r := first(); return r.Status() }(), "its own repeat")
		ended := w.decided(b, b.unpause)
		w.refused(first, "unpaused")
		w.Advance(ms)
		again := w.decided(a, func() { a.pause(lease) })
		w.refused(ended, "paused: migration")
		w.refused(first, "paused: migration")
		require.NoError(w.T, a.resize(3), "another matter")
		r := again()
		require.Equal(w.T, "paused", r.Status())
		w.Advance(lease)
		r = again()
		require.Equal(w.T, "unpaused", r.Status(), "it has ended by itself")
		require.Zero(w.T, r.Int(1))
	})
}

// Another call comes between the look of a call and its script.
func TestAPauseThatAnotherHasOvertakenSaysSo(t *testing.T) {
	inWorld(t, func(_ *testing.T, w *world) {
		a, b := w.node(), w.node()
		a.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "semaphore_pause" {
				b.pause(lease)
			}
			return link.Pass
		})
		var stale *berth.StaleError
		require.ErrorAs(w.T, a.Operator().Unpause(context.Background(), keyspace.Sem, gpu), &stale)
		require.Equal(w.T, berth.StaleError{Name: gpu, Changed: "paused: migration"}, *stale)
	})
}

func TestAPauseIsRefusedThatCannotBe(t *testing.T) {
	inWorld(t, func(_ *testing.T, w *world) {
		ops := w.node().Operator()
		for field, err := range map[string]error{
			"lasts":  ops.Pause(context.Background(), keyspace.Sem, gpu, 0, ""),
			"lasts ": ops.Pause(context.Background(), keyspace.Sem, gpu, berth.Forever, ""),
			" lasts": ops.Pause(context.Background(), keyspace.Sem, gpu, time.Microsecond, ""),
			"reason": ops.Pause(context.Background(), keyspace.Sem, gpu, time.Second, string(make([]byte, 513))),
			"name":   ops.Pause(context.Background(), keyspace.Sem, "", time.Second, ""),
			"name ":  ops.Unpause(context.Background(), keyspace.Sem, ""),
		} {
			var bad *berth.ConfigError
			require.ErrorAs(w.T, err, &bad)
			require.Contains(w.T, field, bad.Field)
		}
		require.Empty(w.T, w.Keys())
	})
}

// A flush has the pause forgotten: who waited is restored, and granted.
func TestAFlushEndsAPause(t *testing.T) {
	inWorld(t, func(_ *testing.T, w *world) {
		n := w.node()
		n.pause(paused)
		q := n.queue(1, nil)
		w.Do("FLUSHALL")
		q.Returned(lease)
		require.NoError(w.T, q.Err)
	})
}

// What a flush lost returns to the line of a name that was paused since, ahead of who came since.
func TestWhoIsRestoredWaitsAPauseOut(t *testing.T) {
	inWorld(t, func(_ *testing.T, w *world) {
		n, late := w.node(), w.node()
		n.take(1, nil)
		first := n.queue(1, nil)
		w.Do("FLUSHALL")
		w.Advance(10 * time.Millisecond) // a flush takes the last ticket along: the clock alone says who came later
		begun := w.Now()
		n.pause(paused)
		behind := late.queue(1, nil)
		w.Advance(lease)
		require.Equal(w.T, 2, w.stats().Waiting, "it is restored while nothing is granted")
		testkit.RequirePending(w.T, first, behind)
		got := first.GrantedBy(begun + paused)
		require.True(w.T, behind.Pending(), "it stood ahead")
		require.NoError(w.T, got.Release(context.Background()))
		behind.GrantedBy(w.Now())
	})
}

// A Pause does without the notice that it cannot read. An Unpause would not last: it is refused.
func TestANameIsPausedThoughTheNoticeCannotBeRead(t *testing.T) {
	for name, fate := range map[string]link.Fate{"refused": link.Refuse("NOPERM no permissions"), "unanswered": link.LoseRequest} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(_ *testing.T, w *world) {
				n, ops := w.node(), w.node()
				ops.OnCommand(func(c link.Command) link.Fate {
					if c.Name == "HMGET" && c.Args[0] == "berth:notice:{all}:state" {
						return fate
					}
					return link.Pass
				})
				ops.pause(time.Hour)
				require.LessOrEqual(w.T, w.Now(), 2*time.Second)
				q := n.queue(1, nil)
				require.Error(w.T, ops.Operator().Unpause(context.Background(), keyspace.Sem, gpu))
				require.True(w.T, q.Pending(), "nothing was changed")
				ops.OnCommand(nil)
				ops.unpause()
				q.GrantedBy(w.Now())
			})
		})
	}
}

// Many wait: all of them are granted at the end, in their order.
func TestAllThatWaitAreGrantedAtTheEndOfAPause(t *testing.T) {
	inWorld(t, func(_ *testing.T, w *world) {
		const many = 300
		n := w.node()
		n.pause(paused)
		waits := make([]*wait, many)
		for i := range waits {
			waits[i] = n.queue(many, nil)
		}
		last := int64(0)
		for _, q := range waits {
			fence := q.GrantedBy(paused).Fence()
			require.Greater(w.T, fence, last)
			last = fence
		}
	})
}

// A wait that ends by its own time says that its name is paused, and for how long: nobody else is in the way.
func TestAWaitThatEndsInAPauseIsToldThePause(t *testing.T) {
	for name, test := range map[string]struct {
		before, lasts time.Duration // when the name is paused, and for how long
		told          bool
	}{
		"paused before it came":          {0, paused, true},
		"paused while it waits":          {lease + lease/2, paused, true},
		"a pause that has ended by then": {0, lease, false},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(_ *testing.T, w *world) {
				n, ops := w.node(), w.node()
				held := n.take(1, nil)
				if test.before == 0 {
					ops.pause(test.lasts)
				}
				const waits = 2 * lease
				ctx, cancel := context.WithTimeout(context.Background(), waits)
				defer cancel()
				q, dated := n.queue(1, &semaphore.AcquireOptions{MaxWait: waits}), n.queueOn(ctx, n.gpu(1), nil)
				if test.before > 0 {
					w.Until(test.before)
					ops.pause(test.lasts)
				}
				require.NoError(w.T, held.Err())
				for _, q := range []*wait{q, dated} {
					refused := q.Refused(waits, berth.ReasonTimedOut)
					if !test.told {
						require.Nil(w.T, refused.Pause)
						continue
					}
					left := test.before + test.lasts - waits
					require.Equal(w.T, &berth.Pause{Left: left, Since: w.Began.Add(test.before), Reason: "migration"}, refused.Pause)
					require.ErrorContains(w.T, refused, "timed out after 12s; paused for "+left.String()+": migration")
				}
			})
		})
	}
}

// The end of a wait whose server has fallen silent is not put off by asking for a pause.
func TestAWaitEndsInTimeThoughNobodySaysWhetherItsNameIsPaused(t *testing.T) {
	inWorld(t, func(_ *testing.T, w *world) {
		n, ops := w.node(), w.node()
		ops.pause(paused)
		q := n.queue(1, &semaphore.AcquireOptions{MaxWait: lease})
		w.Until(lease - 2*time.Second)
		n.Stall()
		require.Nil(w.T, q.Refused(lease, berth.ReasonTimedOut).Pause)
		n.Flow()
	})
}
