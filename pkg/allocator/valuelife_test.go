package allocator_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/observe"
)

func TestAValueIsClosedWhenItsResourceIsRemoved(t *testing.T) {
	inEach(t, map[string]func(*desk) error{
		"Remove":  func(d *desk) error { return change(d.Remove(ctx, []string{"a", "b"})) },
		"Replace": func(d *desk) error { return change(d.Replace(ctx, []string{"c"}, nil)) },
		"Clear":   func(d *desk) error { return change(d.Clear(ctx)) },
	}, func(t *testing.T, w *world, remove func(*desk) error) {
		w.add("a", "b")
		d := w.desk(allocator.Config[string]{}, nil)
		w.release(d.takes("a", nil))
		held := d.takes("b", nil)
		w.release(d.takes("a", nil))
		opened, _ := d.lists()
		require.Equal(t, []string{"a", "b"}, opened, "once")
		require.NoError(t, remove(d))
		d.requireClosed("a") // b is in use
		require.NoError(t, held.Err())
		require.Equal(t, "b", held.Value())
		w.release(held)
		d.requireClosed("a", "b")
		d.Shut()
		d.requireClosed("a", "b")
	})
}

func TestAValueIsClosedWithTheReleaseOfALeavingResource(t *testing.T) {
	removed := func(w *world) { w.remove("a") }
	type row struct {
		leave func(w *world)
		do    bool
	}
	inEach(t, map[string]row{
		"removed by another process": {removed, false},
		"expired":                    {func(w *world) { w.Advance(2 * time.Second) }, false},
		"removed, of a Do":           {removed, true},
	}, func(t *testing.T, w *world, c row) {
		require.NoError(t, change(w.pool.Add(t.Context(), []string{"a"}, &allocator.AddOptions{Expiry: time.Second})))
		d := w.desk(allocator.Config[string]{}, nil)
		leaves := func(context.Context, *allocator.Allocation[string]) error {
			c.leave(w)
			d.requireClosed()
			return nil
		}
		if c.do {
			require.NoError(t, d.Do(t.Context(), nil, leaves))
		} else {
			held := d.takes("a", nil)
			_ = leaves(t.Context(), held)
			w.release(held)
		}
		d.requireClosed("a")
	})
}

// What ends without its holder has its value kept for the next; it is closed with the node.
func TestAValueOutlivesAHoldThatIsLost(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		d := w.desk(allocator.Config[string]{}, nil)
		held := d.takes("a", &allocator.AllocateOptions{NoRenew: true})
		w.Advance(lease)
		require.ErrorIs(t, held.Release(t.Context()), berth.ErrExpired)
		w.release(d.takes("a", nil))
		opened, closed := d.lists()
		require.Equal(t, []string{"a"}, opened)
		require.Empty(t, closed)
		d.Shut()
		d.requireClosed("a")
	})
}

func TestAnUnhealthyValueIsClosedAndOpenedAnew(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		sick := true
		d := w.desk(allocator.Config[string]{Healthy: func(_ context.Context, key string) error {
			if sick && key == "a" {
				return errMine
			}
			return nil
		}}, nil)
		require.Equal(t, "b", must(d.AllocateHealthy(t.Context(), nil))(t).Resource())
		d.requireClosed("a")
		require.Equal(t, errMine.Error(), w.status("a").Reason)
		sick = false
		require.Equal(t, "a", d.queue(nil).GrantedBy(time.Minute).Resource())
		opened, _ := d.lists()
		require.Equal(t, []string{"a", "b", "a"}, opened)
		d.requireClosed("a")
	})
}

// Swap keeps the old value for who comes next here.
func TestAValueStaysOpenAfterASwap(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		d := w.desk(allocator.Config[string]{}, nil)
		held := d.takes("a", nil)
		require.NoError(t, held.Swap(t.Context()))
		require.NoError(t, held.Swap(t.Context()))
		opened, closed := d.lists()
		require.Equal(t, []string{"a", "b"}, opened)
		require.Empty(t, closed)

		// The one that left while it was held is closed when it is swapped away: only the swap knows that it has left.
		w.remove("a")
		d.requireClosed()
		_ = held.Rest(time.Hour, "429")
		require.NoError(t, held.Swap(t.Context()))
		d.requireClosed("a")
		require.Equal(t, map[string]allocator.State{"b": allocator.Leased}, w.states())
		w.remove("b")
		_ = held.Rest(time.Hour, "429")
		w.release(held)
		d.requireClosed("a", "b")
		require.NotContains(t, d.Kinds(), observe.Rested, "they have left")
	})
}
