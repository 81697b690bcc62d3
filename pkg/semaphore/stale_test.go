package semaphore_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// resized has a node set a capacity, and returns what gives the server a copy of that.
func (w *world) resized(n *proc, capacity int) (copied func() scriptkit.Reply) {
	w.T.Helper()
	var args []string
	n.OnCommand(func(c link.Command) link.Fate {
		if c.Name == "semaphore_resize" {
			args = c.Args[2+2:] // behind the text, and the Redis keys with their number
		}
		return link.Pass
	})
	require.NoError(w.T, n.resize(capacity))
	n.OnCommand(nil)
	return func() scriptkit.Reply {
		w.T.Helper()
		return w.Call("semaphore_resize", args...)
	}
}

// refused gives the server a copy that comes late, which must write nothing.
func (w *world) refused(copied func() scriptkit.Reply, changed string) {
	w.T.Helper()
	before, expiry := w.Dump(), w.Expiry()
	r := copied()
	require.Equal(w.T, []string{"stale", "", changed}, []string{r.Status(), r.Str(2), r.Str(3)})
	require.Equal(w.T, before, w.Dump())
	require.Equal(w.T, expiry, w.Expiry())
}

// The copy of a Resize comes when a newer one has been answered, be it in the same millisecond.
func TestALateCopyOfAResizeIsRefused(t *testing.T) {
	for name, start := range map[string]func(n *proc){
		"of a name that is not there": func(*proc) {},
		"of a thin name that is idle": func(n *proc) {
			require.NoError(n.w.T, n.take(1, nil).Release(context.Background()))
		},
		"of a thin name that is held":   func(n *proc) { n.take(1, nil) },
		"of a fat name that is held":    func(n *proc) { n.take(3, nil) },
		"of a name that was set before": func(n *proc) { require.NoError(n.w.T, n.resize(7)) },
	} {
		for _, newer := range []int{1, 2, 5} {
			for _, pause := range []time.Duration{0, ms, 30 * time.Second} {
				t.Run(name, func(t *testing.T) {
					inWorld(t, func(t *testing.T, w *world) {
						old, n := w.node(), w.node()
						start(old)
						copied := w.resized(old, 5)
						w.Advance(pause)
						require.NoError(t, n.resize(newer))
						changed := map[int]string{1: "capacity 1, before 5", 2: "capacity 2, before 5", 5: "capacity 5, before 5"}[newer]
						w.refused(copied, changed)
						w.Advance(time.Minute - ms)
						w.refused(copied, changed)
						require.Equal(t, newer, w.stats().Capacity)
					})
				})
			}
		}
	}
}

// A capacity that is what it was is set, too: an older call must not undo that.
func TestAResizeOfAThinNameToWhatItIsIsKnown(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		old, n := w.node(), w.node()
		p := old.take(1, nil)
		var late []string
		old.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "semaphore_resize" && late == nil {
				late = c.Args[2+2:]
				require.NoError(t, n.resize(1))
			}
			return link.Pass
		})
		require.ErrorIs(t, old.resize(5), berth.ErrStale)
		w.refused(func() scriptkit.Reply { return w.Call("semaphore_resize", late...) }, "capacity 1, before 1")
		require.NoError(t, p.Err())
		require.Equal(t, 1, w.stats().Capacity)
	})
}

func TestAResizeThatIsRepeatedIsAnsweredTheSameAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.connect()
		require.NoError(t, n.resize(3))
		n.Once("semaphore_resize", link.LoseReply)
		require.NoError(t, n.resize(5))
		require.Equal(t, 3, n.Count("semaphore_resize"))
		told := n.Told(observe.Resized)
		require.Equal(t, []int{5, 3}, []int{told[len(told)-1].Capacity, told[len(told)-1].Count}, "before is what it was before the first")
		copied := w.resized(n, 6)
		before := w.Dump()
		r := copied()
		require.Equal(t, []any{"resized", int64(5), int64(0), int64(0), int64(0)}, []any{r.Status(), r.Int(1), r.Int(2), r.Int(3), r.Int(4)})
		require.Equal(t, before, w.Dump())
	})
}

func TestAResizeThatAnotherHasOvertakenSaysWhatWasChanged(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, other := w.node(), w.node()
		require.NoError(t, n.resize(3))
		after := ""
		n.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "semaphore_resize" && after == "" {
				require.NoError(t, other.resize(4))
				after = w.Dump()
			}
			return link.Pass
		})
		err := n.resize(5)
		require.ErrorIs(t, err, berth.ErrStale)
		var stale *berth.StaleError
		require.ErrorAs(t, err, &stale)
		require.Equal(t, berth.StaleError{Name: gpu, Changed: "capacity 4, before 3"}, *stale)
		require.EqualError(t, err, `berth: "gpu": changed by another call meanwhile: capacity 4, before 3`)
		require.Equal(t, after, w.Dump(), "it has written nothing")
		require.Len(t, n.Told(observe.Resized), 1)
		require.NoError(t, n.resize(5), "who calls again has seen that")
	})
}

// A name of capacity 1 has its thin form back, and then a copy is not known any more.
func TestAResizedNameBecomesThinAMinuteAfter(t *testing.T) {
	for after, thin := range map[time.Duration]bool{30 * time.Second: false, time.Minute - ms: false, time.Minute: true} {
		t.Run(after.String(), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.node()
				copied := w.resized(n, 1)
				w.Advance(ms)
				require.NoError(t, n.resize(1))
				w.Advance(after)
				p := n.take(1, nil)
				w.Advance(time.Microsecond)
				require.NoError(t, p.Release(context.Background()))
				require.Equal(t, thin, len(w.Keys()) == 1)
				if !thin {
					w.refused(copied, "capacity 1, before 1")
					return
				}
				r := copied()
				require.Equal(t, "resized", r.Status())
			})
		})
	}
}

// The state is there for as long as a copy may come, whatever Linger is.
func TestAResizedNameStaysWhileACopyMayComeLate(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node(node.Config{Linger: time.Second, Lease: time.Second})
		copied := w.resized(n, 5)
		w.Advance(time.Second)
		require.NoError(t, n.resize(2))
		require.Equal(t, 62*time.Second, w.Expiry())
		w.Advance(10 * time.Second)
		require.NoError(t, n.take(2, nil).Release(context.Background()))
		require.Equal(t, 62*time.Second, w.Expiry())
		w.Advance(50*time.Second + 999*ms)
		w.refused(copied, "capacity 2, before 5")
		w.Advance(ms)
		require.Empty(t, w.Keys())
	})
}
