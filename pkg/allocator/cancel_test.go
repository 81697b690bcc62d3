package allocator_test

import (
	"context"
	"testing"
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
	for name, lost := range map[string]bool{"granted, and the push was lost": false, "in line, and the reply was lost": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("a")
				w.occupy("x")
				n := w.node()
				n.subscribe()
				n.connect()
				if lost {
					n.Once("pool_acquire", link.LoseReply)
				}
				n.Deafen(true)
				q := n.queue(nil)
				if !lost {
					w.vacate("x")
					require.Equal(t, 1, w.inspect().Leased)
				}
				require.True(t, q.Pending())
				q.cancelled()
				w.Advance(0)
				require.Zero(t, w.inspect().Waiting)
				if lost {
					w.vacate("x")
					require.EqualValues(t, 1, w.Field("gone"), "its acquire may still come")
					w.Advance(time.Minute)
					_, err := w.ops().Sweep(t.Context(), proxies)
					require.NoError(t, err)
				}
				require.Equal(t, allocator.Free, w.status("a").State)
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
