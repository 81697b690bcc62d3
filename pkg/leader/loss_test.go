package leader_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
)

// How a leader is cut off: so that connections break, so that nothing comes back, so that only what is sent
// is held back for a while.
var cuts = map[string]struct{ begin, end func(n *process) }{
	"broken": {func(n *process) { n.Cut() }, func(n *process) { n.Mend() }},
	"silent": {func(n *process) { n.Stall() }, func(n *process) { n.Flow() }},
}

// A hundred cuts, each at another moment between two heartbeats.
func TestTheContextOfWhoIsCutOffEndsBeforeAnotherLeads(t *testing.T) {
	for name, cut := range cuts {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				a, b := w.node(), w.node()
				leads, next := a.stand(nil, nil), b.stand(nil, nil)
				for i := range 34 {
					w.Advance(lease + time.Duration(i)*(lease/3)/34)
					terms := len(leads.all())
					require.True(t, leads.leads())
					at := w.Now()
					cut.begin(leads.n)
					w.Advance(lease + 50*ms)
					lost, won := leads.all()[terms-1], next.all()[len(next.all())-1]
					require.Positive(t, lost.ended, "its context lives")
					require.Less(t, lost.ended, won.from, "two lead")
					require.ErrorIs(t, context.Cause(lost.ctx), berth.ErrLost)
					require.Greater(t, won.fence, lost.fence)
					require.LessOrEqual(t, won.from-at, lease+50*ms)
					require.True(t, next.leads())
					cut.end(leads.n)
					w.Advance(lease)
					require.Len(t, leads.all(), terms)
					require.Equal(t, 1, w.waiting(), "it stands again")
					leads, next = next, leads
				}
			})
		})
	}
}

func TestTheNextLeadsWithinALeaseOfADeath(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.node().stand(nil, nil)
		b := w.node().stand(nil, nil)
		w.Advance(lease + time.Second)
		a.n.Die()
		w.Advance(lease + 50*ms)
		require.True(t, b.leads())
	})
}

// A flush loses the line too. Who leads is told by the next heartbeat; candidates ask again with the
// places that they had.
func TestAfterAFlushSomebodyLeads(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.node().stand(nil, nil)
		b := w.node().stand(nil, nil)
		w.Advance(time.Second)
		w.Do("FLUSHALL")
		w.Advance(lease)
		require.Len(t, append(a.all(), b.all()...), 2)
		require.NotEqual(t, a.leads(), b.leads())
		require.ErrorIs(t, context.Cause(a.all()[0].ctx), berth.ErrLost)
	})
}

// A server that is away for longer than a lease ends the term, and the line comes back with it.
func TestAnOutageEndsATermAndNothingElse(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node().stand(nil, nil), w.node().stand(nil, nil)
		w.Advance(time.Second)
		a.n.Cut()
		b.n.Cut()
		w.Advance(5 * time.Minute)
		require.False(t, a.leads() || b.leads())
		require.Empty(t, b.all())
		a.n.Mend()
		b.n.Mend()
		w.Advance(lease)
		require.NotEqual(t, a.leads(), b.leads())
		synctest.Wait()
		require.Equal(t, 1, w.waiting())
	})
}

// An owner's other locks are of the same owner: what f locks meanwhile by its context says so.
func TestTheContextOfFCarriesTheOwnerAndTheFence(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		a := n.stand(nil, nil)
		h := w.Holders()[0]
		require.Equal(t, h.ID, berth.Owner(a.only().ctx))
		require.Equal(t, h.Fence, n.election(nil).Fence(a.only().ctx))
		require.Zero(t, n.named("other", nil).Fence(a.only().ctx))
		require.Zero(t, n.election(nil).Fence(context.Background()))
		derived, cancel := context.WithTimeout(a.only().ctx, time.Hour)
		defer cancel()
		require.Equal(t, h.Fence, n.election(nil).Fence(derived))
	})
}
