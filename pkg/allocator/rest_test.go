package allocator_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/observe"
)

// requireRests fails unless a resource rests until that moment, for that reason, and
// is free then.
func (w *world) requireRests(resource string, until time.Duration, reason string) {
	w.T.Helper()
	info := w.status(resource)
	require.Equal(w.T, allocator.Resting, info.State)
	require.Equal(w.T, until, w.Now()+info.Left)
	require.Equal(w.T, reason, info.Reason)
	require.NotContains(w.T, w.list(), resource)
	w.inspect()
	w.Until(until - ms)
	require.Equal(w.T, allocator.Resting, w.status(resource).State)
	_, err := w.pool.TryAllocate(context.Background(), nil)
	require.ErrorIs(w.T, err, berth.ErrBusy)
	w.Until(until)
	require.Equal(w.T, allocator.Free, w.status(resource).State)
	require.Empty(w.T, w.status(resource).Reason)
	a, err := w.pool.TryAllocate(context.Background(), nil)
	require.NoError(w.T, err)
	require.Equal(w.T, resource, a.Resource())
	w.inspect()
}

func TestAResourceRestsAfterEachHoldHoweverItEnded(t *testing.T) {
	ctx := context.Background()
	const cooldown = 3 * time.Second
	for name, c := range map[string]struct {
		opts allocator.AllocateOptions
		end  func(w *world, n *proc, held *allocator.Allocation[string])
		at   time.Duration
	}{
		"released": {
			end: func(w *world, _ *proc, held *allocator.Allocation[string]) { w.release(held) },
			at:  time.Second,
		},
		"ended by an operator": {
			end: func(w *world, _ *proc, _ *allocator.Allocation[string]) {
				require.NoError(w.T, second(w.ops().Release(ctx, berth.Target{All: true})))
			},
			at: time.Second,
		},
		"the node was closed": {
			end: func(_ *world, n *proc, _ *allocator.Allocation[string]) { n.Shut() },
			at:  time.Second,
		},
		"its lease ran out": {
			opts: allocator.AllocateOptions{NoRenew: true},
			end:  func(w *world, _ *proc, _ *allocator.Allocation[string]) { w.Until(lease + time.Second) },
			at:   lease,
		},
		"swapped": {
			end: func(w *world, _ *proc, held *allocator.Allocation[string]) {
				w.add("b")
				require.NoError(w.T, held.Swap(ctx))
				require.Equal(w.T, "b", held.Resource())
			},
			at: time.Second,
		},
		"granted to a wait that was cancelled": {
			end: func(w *world, n *proc, held *allocator.Allocation[string]) {
				w.release(held)
				q := n.queue(nil)
				n.Deafen(true)
				w.Until(4 * time.Second)
				_, err := w.ops().Sweep(ctx, proxies)
				require.NoError(w.T, err)
				require.True(w.T, q.Pending())
				q.cancelled()
				synctest.Wait()
			},
			at: 4 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("a")
				n := w.nodeOf(allocator.PoolConfig[string]{Cooldown: cooldown})
				held := n.takes("a", &c.opts)
				w.Until(time.Second)
				c.end(w, n, held)
				_, err := w.ops().Sweep(ctx, proxies) // what has expired is counted from its deadline all the same
				require.NoError(t, err)
				w.requireRests("a", c.at+cooldown, "")
			})
		})
	}
}

func TestAnAllocationsRestIsForItsResourceIfItIsLongerThanTheCooldown(t *testing.T) {
	const cooldown = 2 * time.Second
	long := strings.Repeat("ü", 300)
	for name, c := range map[string]struct {
		ask    func(held *allocator.Allocation[string])
		rest   time.Duration
		reason string
		swap   bool
	}{
		"longer":        {ask: func(h *allocator.Allocation[string]) { _ = h.Rest(5*time.Second, "429") }, rest: 5 * time.Second, reason: "429"},
		"shorter":       {ask: func(h *allocator.Allocation[string]) { _ = h.Rest(time.Second, "429") }, rest: cooldown},
		"taken back":    {ask: func(h *allocator.Allocation[string]) { _ = h.Rest(5*time.Second, "429"); _ = h.Rest(0, "") }, rest: cooldown},
		"rounded up":    {ask: func(h *allocator.Allocation[string]) { _ = h.Rest(5*time.Second+1, "") }, rest: 5*time.Second + ms},
		"a long reason": {ask: func(h *allocator.Allocation[string]) { _ = h.Rest(5*time.Second, long) }, rest: 5 * time.Second, reason: long[:512]},
		"negative": {ask: func(h *allocator.Allocation[string]) {
			_ = h.Rest(5*time.Second, "429")
			if !errors.Is(h.Rest(-5*time.Second, ""), berth.ErrInvalidConfig) {
				panic("a negative rest was taken")
			}
		}, rest: 5 * time.Second, reason: "429"},
		"longer, and swapped": {
			ask: func(h *allocator.Allocation[string]) { _ = h.Rest(5*time.Second, "429") }, rest: 5 * time.Second, reason: "429", swap: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("a")
				n := w.nodeOf(allocator.PoolConfig[string]{Cooldown: cooldown})
				held := n.takes("a", nil)
				w.Until(time.Second)
				n.Fresh()
				c.ask(held)
				require.Empty(t, n.Scripts(), "it sends nothing")
				if c.swap {
					w.add("b")
					require.NoError(t, held.Swap(context.Background()))
					require.Equal(t, "b", held.Resource())
				} else {
					w.release(held)
				}
				w.requireRests("a", time.Second+c.rest, c.reason)
				if c.swap {
					w.release(held)
					require.Equal(t, cooldown, w.status("b").Left, "what was asked for was for the old one")
				}
			})
		})
	}
}

var exactly = &allocator.RestOptions{Exactly: true}

// Of a resource that is free it begins at once, of one that is held when that comes back.
func TestTheLongerOfTwoRestsOfAnOperatorCountsOrTheExactOne(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]struct {
		before time.Duration
		opts   *allocator.RestOptions
		lasts  time.Duration
		reason string
	}{
		"shorter": {berth.Forever, nil, berth.Forever, "before"},
		"exactly": {berth.Forever, exactly, 3 * time.Second, "mine"},
		"longer":  {time.Second, nil, 3 * time.Second, "mine"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("free", "leased")
				n := w.node()
				w.release(n.takes("free", nil))
				held := n.takes("leased", nil)
				for _, resource := range []string{"free", "leased"} {
					require.NoError(t, n.Rest(ctx, resource, c.before, "before", nil))
					require.NoError(t, n.Rest(ctx, resource, 3*time.Second, "mine", c.opts))
				}
				require.Equal(t, allocator.Leased, w.status("leased").State)
				require.Equal(t, c.reason, w.status("leased").Reason, "why it will")
				require.NoError(t, held.Err(), "its holder keeps it")
				w.release(held)
				for _, resource := range []string{"free", "leased"} {
					require.Equal(t, c.lasts, w.status(resource).Left, resource)
					require.Equal(t, c.reason, w.status(resource).Reason, resource)
				}
				shorter := 0
				for _, told := range n.Told(observe.Rested) {
					if told.Left == 3*time.Second && c.reason == "before" {
						shorter++
					}
				}
				require.Zero(t, shorter, "nobody is told of what does not count")
				require.NoError(t, n.Rest(ctx, "free", 0, "", nil))
				require.Equal(t, allocator.ResourceInfo{Resource: "free", MaxSharers: 1, State: allocator.Free}, w.status("free"))
				w.inspect()
			})
		})
	}
}

func TestWhatIsNotInThePoolCannotRest(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for _, d := range []time.Duration{0, time.Second, berth.Forever} {
			require.ErrorIs(t, w.pool.Rest(context.Background(), "a", d, "", nil), berth.ErrAbsent)
		}
		require.Empty(t, w.Keys(), "asking makes no pool")
	})
}

func TestATryIsToldThatAllRest(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		n := w.node()
		held := n.takes("a", nil)
		require.NoError(t, n.Rest(t.Context(), "b", time.Minute, "", nil))
		refused := func(reason berth.Reason) error {
			t.Helper()
			_, err := n.TryAllocate(t.Context(), nil)
			require.ErrorIs(t, err, berth.ErrBusy)
			refused, _ := errors.AsType[*berth.AcquireError](err)
			require.Equal(t, reason, refused.Reason)
			return err
		}
		_ = refused(berth.ReasonFull) // one is held
		_ = held.Rest(time.Minute, "")
		w.release(held)
		require.EqualError(t, refused(berth.ReasonResting), `berth: "proxies" not acquired: resting (capacity 2, held 0, waiting 0)`)
	})
}
