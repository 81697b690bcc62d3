package semaphore_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/semaphore"
)

const readonly = "READONLY You can't write against a read only replica."

// demote has the server refuse every script of the node, as a replica does.
func (n *node) demote() {
	n.OnCommand(func(c link.Command) link.Fate {
		if strings.Contains(c.Name, "_") { // a script
			return link.Refuse(readonly)
		}
		return link.Pass
	})
}

// A replica's refusal is a server that cannot be reached: who gets nowhere because of it
// says so after a while and then once a minute, and goes on.
func TestAServerThatRefusesIsToldOfAgainAndAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		p := n.take(1, &semaphore.AcquireOptions{Lease: berth.Forever})
		n.demote()
		w.Advance(2 * time.Second)
		require.Empty(t, n.Told(observe.Unavailable), "not at once: a failover may take as long")
		w.Advance(2 * time.Minute)
		told := n.Told(observe.Unavailable)
		require.Len(t, told, 2)
		for _, e := range told {
			require.Equal(t, "holds", e.Detail)
			require.ErrorContains(t, e.Err, readonly)
			require.ErrorIs(t, e.Err, berth.ErrUnavailable)
			require.NotErrorIs(t, e.Err, context.DeadlineExceeded, "nobody's context has ended")
			require.Equal(t, p.Fence(), e.Fence)
			require.Equal(t, berth.Forever, e.Left)
		}
		require.Greater(t, told[1].Count, told[0].Count)
		require.GreaterOrEqual(t, told[1].Silent-told[0].Silent, time.Minute)
		n.OnCommand(nil)
		w.Advance(90 * time.Second)
		require.Len(t, n.Told(observe.Unavailable), 2, "the server answers again")
		require.NoError(t, p.Err())
	})
}
