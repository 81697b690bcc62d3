package allocator_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
)

func TestAPoolOfAProcessThatDrainsGetsNothingNew(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		asked := 0
		n := w.nodeOf(allocator.Config[string]{
			RefreshEvery: time.Minute,
			Source:       func(context.Context) ([]string, error) { asked++; return []string{"a", "b"}, nil },
		})
		w.Advance(time.Second)
		a := n.take(nil)
		w.Notice("l:*", 0, "drain")
		w.Advance(5 * time.Second)
		require.True(t, n.node.Draining())
		asked = 0
		n.Reset()
		require.ErrorIs(t, second(n.TryAllocate(t.Context(), nil)), berth.ErrDraining)
		require.ErrorIs(t, a.Swap(t.Context()), berth.ErrDraining, "it would get something new")
		report, err := n.CheckHealth(t.Context(), 1)
		require.ErrorIs(t, err, berth.ErrDraining)
		require.Zero(t, report.Checked)
		w.Advance(10 * time.Minute)
		require.Zero(t, asked, "it is no turn of a process that drains")
		require.Zero(t, n.Scripts()["pool_acquire"]+n.Scripts()["pool_swap"])
		require.NoError(t, a.Err())
		w.release(a)

		w.Notice("l:*", 0, "stop")
		w.Advance(5 * time.Second)
		w.release(n.take(nil))
		w.Advance(10 * time.Minute)
		require.Positive(t, asked)
	})
}
