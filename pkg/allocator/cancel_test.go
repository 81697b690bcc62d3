package allocator_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/allocator"
)

// cancelled ends a wait, and checks what it returns and when.
func (a *wait) cancelled() {
	a.W.T.Helper()
	at := a.W.Now()
	a.Cancel(errMine)
	refused := a.Refused(at, berth.ReasonCancelled)
	require.ErrorIs(a.W.T, refused, errMine)
	require.ErrorIs(a.W.T, refused, context.Canceled)
	require.NotErrorIs(a.W.T, refused, berth.ErrBusy)
}

func TestACancelledWaitLeavesNothingInWhateverStateItWas(t *testing.T) {
	for name, c := range map[string]struct {
		cancel func(w *world, n *node, q *wait)
		before func(n *node)
		takes  time.Duration // until nothing is left
		gone   bool          // a tombstone is left, as its acquire may still come
	}{
		"in line": {cancel: func(_ *world, _ *node, q *wait) { q.cancelled() }},
		"granted before the reply came that it stands in line": {
			before: func(n *node) { n.Once("pool_acquire", link.Slow(time.Second)) },
			cancel: func(w *world, _ *node, q *wait) {
				w.vacate("x")
				require.Equal(w.T, 1, w.inspect().Leased)
				q.cancelled()
			},
			takes: time.Second,
		},
		"the reply was lost": {
			before: func(n *node) { n.Once("pool_acquire", link.LoseReply) },
			cancel: func(_ *world, _ *node, q *wait) { q.cancelled() },
			gone:   true,
		},
		"granted, and the push was lost": {
			before: func(n *node) { n.Deafen(true) },
			cancel: func(w *world, _ *node, q *wait) {
				w.vacate("x")
				require.True(w.T, q.Pending())
				require.Equal(w.T, 1, w.inspect().Leased)
				q.cancelled()
			},
		},
		"granted to it, its lease over meanwhile": {
			cancel: func(w *world, n *node, q *wait) {
				w.Advance(time.Second)
				n.Stall()
				w.vacate("x")
				w.Advance(lease)
				q.cancelled()
				n.Flow()
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("a")
				w.occupy("x")
				n := w.node()
				n.subscribe()
				n.connect()
				if c.before != nil {
					c.before(n)
				}
				q := n.queue(nil)
				c.cancel(w, n, q)
				w.Advance(c.takes)
				require.Zero(t, w.inspect().Waiting)
				if w.holder("a") == "x.1" {
					w.vacate("x")
				}
				require.Equal(t, allocator.Free, w.status("a").State)
				if c.gone {
					require.EqualValues(t, 1, w.Field("gone"))
					w.Advance(time.Minute)
					_, err := w.pool.GC(t.Context())
					require.NoError(t, err)
				}
				w.requireIdle()
			})
		})
	}
}

func TestTheNextInLineGetsWhatACancelledWaitWasGranted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		w.occupy("x")
		n, other := w.node(), w.node()
		q := n.queue(nil)
		next := other.queue(nil)
		w.Advance(time.Second)
		n.Deafen(true)
		w.vacate("x")
		require.True(t, q.Pending())
		require.True(t, next.Pending())
		q.cancelled()
		next.gets(w.Now(), "a")
	})
}

// The cancel races with the grant at the same moment: either one returns it, and
// never both or none.
func TestACancelThatMeetsAGrantLosesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		n, other := w.node(), w.node()
		for range 20 {
			held := other.takes("a", nil)
			q := n.queue(nil)
			done := make(chan struct{})
			go func() {
				defer close(done)
				_ = held.Release(context.Background())
			}()
			go q.Cancel(errMine)
			<-done
			<-q.Done
			synctest.Wait()
			if q.Err == nil {
				require.Equal(t, q.Got.ID(), w.holder("a"))
				w.release(q.Got)
			} else {
				require.ErrorIs(t, q.Err, errMine)
			}
			require.Equal(t, allocator.Free, w.status("a").State)
			w.Advance(ms)
		}
		w.requireIdle()
	})
}

func TestCloseEndsTheWaits(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		w.occupy("x")
		n := w.node()
		held := n.takes("b", nil)
		q := n.queue(nil)
		require.NoError(t, n.client.Close(context.Background()))
		<-q.Done
		require.ErrorIs(t, q.Err, berth.ErrClosed)
		require.ErrorIs(t, held.Err(), berth.ErrReleased)
		require.Equal(t, []string{"b"}, w.list())
		_, err := n.Allocate(t.Context(), nil)
		require.ErrorIs(t, err, berth.ErrClosed)
		w.vacate("x")
		w.requireIdle()
	})
}
