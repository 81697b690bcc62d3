package semaphore_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/semaphore"
)

const readonly = "READONLY You can't write against a read only replica."

// refused has the server refuse every script of the node.
func (n *proc) refused(answer string) {
	n.OnCommand(func(c link.Command) link.Fate {
		if strings.Contains(c.Name, "_") { // a script
			return link.Refuse(answer)
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
		n.refused(readonly)
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

// A refusal that passes by itself is silence: a wait without a bound goes on, and has its place afterwards. Which
// refusals pass is for pkg/scriptkit to test.
func TestWaitsOutlastWhatPasses(t *testing.T) {
	for _, answer := range []string{"MISCONF no snapshot", "NOAUTH no password", "WRONGPASS another password"} {
		t.Run(answer, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) { outlasts(t, w, answer) })
		})
	}
}

func outlasts(t *testing.T, w *world, answer string) {
	t.Helper()
	retry := berth.Retry{Attempts: 3}
	holder, n, late := w.node(), w.node(node.Config{Retry: retry}), w.node()
	p := holder.take(1, nil)
	held, err := n.on("other").Acquire(t.Context(), &semaphore.AcquireOptions{Lease: berth.Forever})
	require.NoError(t, err)
	first := n.queue(1, nil)
	n.refused(answer)
	second := n.queue(1, nil) // it has not been answered yet
	_, err = n.gpu(1).TryAcquire(t.Context(), nil)
	require.ErrorIs(t, err, berth.ErrUnavailable)
	require.NotErrorIs(t, err, berth.ErrBusy)
	require.ErrorIs(t, held.Renew(t.Context()), berth.ErrUnavailable)
	w.Advance(time.Minute)
	last := late.queue(1, nil)
	require.False(t, first.Over() || second.Over())
	require.NoError(t, held.Err())
	n.OnCommand(nil)
	w.Advance(lease)
	require.NoError(t, held.Renew(t.Context()))
	for _, next := range []*wait{first, last, second} {
		require.NoError(t, p.Release(t.Context()))
		p = next.GrantedBy(w.Now())
	}
	require.NoError(t, p.Release(t.Context()))
}
