package allocator_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
)

func TestAValueIsClosedWhenItsResourceIsRemoved(t *testing.T) {
	for name, remove := range map[string]func(*desk) error{
		"Remove": func(d *desk) error { return change(d.Remove(context.Background(), []string{"a", "b"})) },
		"Replace": func(d *desk) error {
			return change(d.Replace(context.Background(), []string{"c"}, nil))
		},
		"Clear": func(d *desk) error { return change(d.Clear(context.Background())) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("a", "b")
				d := w.desk(allocator.PoolConfig[string]{}, nil)
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
		})
	}
}

func TestAValueIsClosedWithTheReleaseOfALeavingResource(t *testing.T) {
	removed := func(w *world) { require.NoError(w.T, change(w.pool.Remove(w.T.Context(), []string{"a"}))) }
	for name, c := range map[string]struct {
		leave func(w *world)
		do    bool
	}{
		"removed by another process": {removed, false},
		"expired":                    {func(w *world) { w.Advance(2 * time.Second) }, false},
		"removed, of a Do":           {removed, true},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				require.NoError(t, change(w.pool.Add(t.Context(), []string{"a"}, &allocator.AddOptions{Expiry: time.Second})))
				d := w.desk(allocator.PoolConfig[string]{}, nil)
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
		})
	}
}

// What ends without its holder has its value kept for the next; it is closed with the node.
func TestAValueOutlivesAHoldThatIsLost(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		d := w.desk(allocator.PoolConfig[string]{}, nil)
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
		d := w.desk(allocator.PoolConfig[string]{Healthy: func(_ context.Context, key string) error {
			if sick && key == "a" {
				return errMine
			}
			return nil
		}}, nil)
		held, err := d.AllocateHealthy(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, "b", held.Resource())
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
		d := w.desk(allocator.PoolConfig[string]{}, nil)
		held := d.takes("a", nil)
		require.NoError(t, held.Swap(t.Context()))
		require.NoError(t, held.Swap(t.Context()))
		opened, closed := d.lists()
		require.Equal(t, []string{"a", "b"}, opened)
		require.Empty(t, closed)

		// The one that left while it was held elsewhere is closed when it is swapped away.
		require.NoError(t, change(d.Remove(t.Context(), []string{"a"})))
		d.requireClosed()
		require.NoError(t, held.Swap(t.Context()))
		d.requireClosed("a")
		require.Equal(t, map[string]allocator.State{"b": allocator.Leased}, w.states())
	})
}
