package leader_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
)

// A cut breaks connections, or nothing comes back and what is sent is held back for a while.
type cut struct{ begin, end func(n *process) }

// A hundred cuts, each at another moment between two heartbeats.
func TestTheContextOfWhoIsCutOffEndsBeforeAnotherLeads(t *testing.T) {
	each(t, map[string]cut{
		"broken": {func(n *process) { n.Cut() }, func(n *process) { n.Mend() }},
		"silent": {func(n *process) { n.Stall() }, func(n *process) { n.Flow() }},
	}, func(t *testing.T, w *world, cut cut) {
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
