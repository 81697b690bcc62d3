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
		"force released": {
			end: func(w *world, _ *proc, held *allocator.Allocation[string]) {
				require.NoError(w.T, w.force(held.ID()))
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
		"its maximum hold was over": {
			opts: allocator.AllocateOptions{MaxHold: 4 * time.Second},
			end:  func(w *world, _ *proc, _ *allocator.Allocation[string]) { w.Until(5 * time.Second) },
			at:   4 * time.Second,
		},
		"its holder died": {
			end: func(w *world, n *proc, _ *allocator.Allocation[string]) {
				n.Die()
				w.Until(lease + 2*time.Second)
			},
			at: lease,
		},
		"its holder had detached it": {
			end: func(w *world, n *proc, held *allocator.Allocation[string]) {
				_, err := held.Detach(ctx)
				require.NoError(w.T, err)
				n.Shut()
				w.Until(lease + 1500*ms)
			},
			at: lease + time.Second,
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

func TestTheCooldownOfAHoldThatEndedLongAgoIsOver(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		n := w.nodeOf(allocator.PoolConfig[string]{Cooldown: time.Minute})
		n.takes("a", &allocator.AllocateOptions{NoRenew: true})
		w.Until(lease + time.Minute - ms)
		_, err := n.TryAllocate(t.Context(), nil)
		require.ErrorIs(t, err, berth.ErrBusy)
		w.Advance(ms)
		n.takes("a", nil)
	})
}

func TestAnAllocationsRestIsForItsResourceIfItIsLongerThanTheCooldown(t *testing.T) {
	const cooldown = 2 * time.Second
	long := strings.Repeat("ü", 300)
	for name, c := range map[string]struct {
		ask    func(held *allocator.Allocation[string])
		rest   time.Duration
		reason string
	}{
		"longer":        {func(h *allocator.Allocation[string]) { _ = h.Rest(5*time.Second, "429") }, 5 * time.Second, "429"},
		"as long":       {func(h *allocator.Allocation[string]) { _ = h.Rest(cooldown, "429") }, cooldown, "429"},
		"shorter":       {func(h *allocator.Allocation[string]) { _ = h.Rest(time.Second, "429") }, cooldown, ""},
		"taken back":    {func(h *allocator.Allocation[string]) { _ = h.Rest(5*time.Second, "429"); _ = h.Rest(0, "") }, cooldown, ""},
		"the last call": {func(h *allocator.Allocation[string]) { _ = h.Rest(9*time.Second, "1"); _ = h.Rest(5*time.Second, "2") }, 5 * time.Second, "2"},
		"rounded up":    {func(h *allocator.Allocation[string]) { _ = h.Rest(5*time.Second+1, "429") }, 5*time.Second + ms, "429"},
		"a long reason": {func(h *allocator.Allocation[string]) { _ = h.Rest(5*time.Second, long) }, 5 * time.Second, long[:512]},
		"negative": {func(h *allocator.Allocation[string]) {
			_ = h.Rest(5*time.Second, "429")
			if !errors.Is(h.Rest(-5*time.Second, ""), berth.ErrInvalidConfig) {
				panic("a negative rest was taken")
			}
		}, 5 * time.Second, "429"},
		"no reason": {func(h *allocator.Allocation[string]) { _ = h.Rest(5*time.Second, "") }, 5 * time.Second, ""},
	} {
		for end, by := range map[string]func(w *world, n *proc, held *allocator.Allocation[string]){
			"Release": func(w *world, _ *proc, held *allocator.Allocation[string]) { w.release(held) },
			"Swap": func(w *world, _ *proc, held *allocator.Allocation[string]) {
				w.add("b")
				require.NoError(w.T, held.Swap(context.Background()))
				require.Equal(w.T, "b", held.Resource())
			},
		} {
			if end == "Swap" && name != "longer" && name != "shorter" {
				continue // what was asked for is the same, whoever takes it along
			}
			t.Run(name+", "+end, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					w.add("a")
					n := w.nodeOf(allocator.PoolConfig[string]{Cooldown: cooldown})
					held := n.takes("a", nil)
					w.Until(time.Second)
					n.Fresh()
					c.ask(held)
					require.Empty(t, n.Scripts(), "it sends nothing")
					by(w, n, held)
					w.requireRests("a", time.Second+c.rest, c.reason)
					if end == "Swap" {
						w.release(held)
						require.Equal(t, w.Now()+cooldown, w.Now()+w.status("b").Left, "what was asked for was for the old one")
					}
				})
			})
		}
	}
}

func TestARestWithoutEndLastsUntilSomebodyEndsIt(t *testing.T) {
	ctx := context.Background()
	for name, begin := range map[string]func(w *world, n *proc){
		"by its holder": func(w *world, n *proc) {
			held := n.takes("a", nil)
			_ = held.Rest(berth.Forever, "banned")
			w.release(held)
		},
		"by an operator": func(w *world, _ *proc) {
			require.NoError(w.T, w.pool.Rest(ctx, "a", berth.Forever, "banned", nil))
		},
		"by an operator, while it was held": func(w *world, n *proc) {
			held := n.takes("a", nil)
			require.NoError(w.T, w.pool.Rest(ctx, "a", berth.Forever, "banned", nil))
			w.release(held)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("a")
				n := w.nodeOf(allocator.PoolConfig[string]{Cooldown: time.Second})
				begin(w, n)
				w.Until(3 * time.Hour)
				_, err := n.TryAllocate(ctx, nil)
				require.ErrorIs(t, err, berth.ErrBusy)
				info := w.status("a")
				require.Equal(t, allocator.Resting, info.State)
				require.Equal(t, berth.Forever, info.Left)
				require.Equal(t, "banned", info.Reason)
				require.NoError(t, w.pool.Rest(ctx, "a", 0, "", nil))
				require.Equal(t, allocator.ResourceInfo{Resource: "a", MaxSharers: 1, State: allocator.Free}, w.status("a"))
				n.takes("a", nil)
			})
		})
	}
}

func TestAnOperatorRestsWhatIsFreeOrRestsAtOnce(t *testing.T) {
	ctx := context.Background()
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		require.NoError(t, w.pool.Rest(ctx, "a", time.Minute, "first", nil))
		require.Equal(t, []string{"b"}, w.list())
		w.Until(time.Second)
		require.NoError(t, w.pool.Rest(ctx, "a", 3*time.Second, "second", exactly))
		w.node().takes("b", nil)
		w.requireRests("a", 4*time.Second, "second")
	})
}

var exactly = &allocator.RestOptions{Exactly: true}

func TestTheLongerRestCounts(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]struct {
		before time.Duration
		opts   *allocator.RestOptions
		lasts  time.Duration
		reason string
	}{
		"a shorter one changes nothing":   {time.Hour, nil, time.Hour, "before"},
		"nor does it end what is endless": {berth.Forever, nil, berth.Forever, "before"},
		"but exactly":                     {berth.Forever, exactly, 3 * time.Second, "mine"},
		"as long":                         {3 * time.Second, nil, 3 * time.Second, "mine"},
		"longer":                          {time.Second, nil, 3 * time.Second, "mine"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("free", "leased")
				n := w.node()
				held := n.takes("free", nil)
				w.release(held)
				held = n.takes("leased", nil)
				for _, resource := range []string{"free", "leased"} {
					require.NoError(t, n.Rest(ctx, resource, c.before, "before", nil))
					require.NoError(t, n.Rest(ctx, resource, 3*time.Second, "mine", c.opts))
				}
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
				w.inspect()
			})
		})
	}
}

// A shared resource may rest while others hold it.
func TestExactlyShortensTheRestOfWhatIsStillHeld(t *testing.T) {
	ctx := context.Background()
	inWorld(t, func(t *testing.T, w *world) {
		require.NoError(t, change(w.pool.Add(ctx, []string{"a"}, &allocator.AddOptions{MaxSharers: 2})))
		n := w.node()
		held := n.takes("a", nil)
		left := n.takes("a", nil)
		require.NoError(t, left.Rest(time.Hour, "429"))
		w.release(left)
		require.NoError(t, n.Rest(ctx, "a", time.Second, "mine", exactly))
		w.Until(time.Second)
		n.takes("a", nil)
		w.release(held)
		w.inspect()
	})
}

func TestAnOperatorsRestOfALeasedResourceBeginsWhenItComesBack(t *testing.T) {
	ctx := context.Background()
	const cooldown = 2 * time.Second
	for name, c := range map[string]struct {
		ask    func(w *world, held *allocator.Allocation[string])
		rest   time.Duration
		reason string
	}{
		"shorter than the cooldown": {
			func(w *world, _ *allocator.Allocation[string]) {
				require.NoError(w.T, w.pool.Rest(ctx, "a", time.Second, "mine", nil))
			}, cooldown, "",
		},
		"longer than what the holder wants": {
			func(w *world, held *allocator.Allocation[string]) {
				_ = held.Rest(4*time.Second, "429")
				require.NoError(w.T, w.pool.Rest(ctx, "a", 5*time.Second, "mine", nil))
			}, 5 * time.Second, "mine",
		},
		"shorter than what the holder wants": {
			func(w *world, held *allocator.Allocation[string]) {
				_ = held.Rest(6*time.Second, "429")
				require.NoError(w.T, w.pool.Rest(ctx, "a", 5*time.Second, "mine", nil))
			}, 6 * time.Second, "429",
		},
		"the last call counts": {
			func(w *world, _ *allocator.Allocation[string]) {
				require.NoError(w.T, w.pool.Rest(ctx, "a", time.Hour, "too long", nil))
				require.NoError(w.T, w.pool.Rest(ctx, "a", 5*time.Second, "mine", exactly))
			}, 5 * time.Second, "mine",
		},
		"taken back": {
			func(w *world, _ *allocator.Allocation[string]) {
				require.NoError(w.T, w.pool.Rest(ctx, "a", time.Hour, "too long", nil))
				require.NoError(w.T, w.pool.Rest(ctx, "a", 0, "", nil))
			}, cooldown, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("a")
				n := w.nodeOf(allocator.PoolConfig[string]{Cooldown: cooldown})
				held := n.takes("a", nil)
				c.ask(w, held)
				require.Equal(t, allocator.Leased, w.status("a").State)
				w.Advance(time.Second)
				require.NoError(t, held.Err(), "its holder keeps it")
				w.inspect()
				w.release(held)
				w.requireRests("a", time.Second+c.rest, c.reason)
			})
		})
	}
}

func TestARestThatWasAskedForBeginsEvenIfTheHolderDies(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		n := w.node()
		n.takes("a", &allocator.AllocateOptions{NoRenew: true})
		require.NoError(t, w.pool.Rest(t.Context(), "a", 5*time.Second, "mine", nil))
		require.Equal(t, "mine", w.status("a").Reason, "why it will")
		w.Until(lease)
		_, err := w.ops().Sweep(t.Context(), proxies)
		require.NoError(t, err)
		w.requireRests("a", lease+5*time.Second, "mine")
	})
}

func TestWhatIsNotInThePoolCannotRest(t *testing.T) {
	ctx := context.Background()
	inWorld(t, func(t *testing.T, w *world) {
		for _, d := range []time.Duration{0, time.Second, berth.Forever} {
			require.ErrorIs(t, w.pool.Rest(ctx, "a", d, "", nil), berth.ErrAbsent)
		}
		require.Empty(t, w.Keys(), "asking makes no pool")

		n := w.node()
		_, err := w.pool.Add(ctx, []string{"short"}, &allocator.AddOptions{Expiry: time.Second})
		require.NoError(t, err)
		w.Until(time.Second)
		require.ErrorIs(t, w.pool.Rest(ctx, "short", time.Minute, "", nil), berth.ErrAbsent)
		w.add("a")
		held := n.takes("a", nil)
		_, err = w.pool.Remove(ctx, []string{"a"})
		require.NoError(t, err)
		require.ErrorIs(t, w.pool.Rest(ctx, "a", time.Minute, "", nil), berth.ErrAbsent, "it is leaving")
		w.release(held)
		require.Empty(t, w.states())

		for field, err := range map[string]error{
			"resource": w.pool.Rest(ctx, "", time.Second, "", nil),
			"d":        w.pool.Rest(ctx, "a", -1, "", nil),
			"reason":   w.pool.Rest(ctx, "a", time.Second, strings.Repeat("x", 513), nil),
		} {
			require.ErrorIs(t, err, berth.ErrInvalidConfig)
			require.ErrorContains(t, err, field)
		}
		w.inspect()
	})
}

func TestWhatRestsCanBeRemovedAndAddedAgain(t *testing.T) {
	ctx := context.Background()
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		require.NoError(t, w.pool.Rest(ctx, "a", time.Minute, "mine", nil))
		w.add("a")
		require.Equal(t, allocator.Resting, w.status("a").State, "what is added again stays as it is")
		_, err := w.pool.Remove(ctx, []string{"a"})
		require.NoError(t, err)
		require.Equal(t, map[string]allocator.State{"b": allocator.Free}, w.states())
		w.inspect()
		w.add("a")
		require.Equal(t, []string{"b", "a"}, w.list(), "it is a new one")
		w.Until(time.Hour)
		w.inspect()
	})
}

func TestWhatHasRestedStandsAtTheEndOfTheList(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b", "c")
		n := w.nodeOf(allocator.PoolConfig[string]{Cooldown: time.Second})
		w.release(n.takes("a", nil))
		require.Equal(t, []string{"b", "c"}, w.list())
		require.Equal(t, 1, w.inspect().Resting)
		w.Advance(time.Second)
		_, err := w.ops().Sweep(t.Context(), proxies)
		require.NoError(t, err)
		require.Equal(t, []string{"b", "c", "a"}, w.list())
		require.Zero(t, w.inspect().Resting)
	})
}

func TestATryIsToldThatAllRest(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a", "b")
		n := w.node()
		held := n.takes("a", nil)
		require.NoError(t, n.Rest(t.Context(), "b", time.Minute, "", nil))
		_, err := n.TryAllocate(t.Context(), nil)
		require.ErrorIs(t, err, berth.ErrBusy)
		refused, _ := errors.AsType[*berth.AcquireError](err)
		require.Equal(t, berth.ReasonFull, refused.Reason, "one is held")
		_ = held.Rest(time.Minute, "")
		w.release(held)
		_, err = n.TryAllocate(t.Context(), nil)
		require.ErrorIs(t, err, berth.ErrBusy)
		refused, _ = errors.AsType[*berth.AcquireError](err)
		require.Equal(t, berth.ReasonResting, refused.Reason)
		require.EqualError(t, err, `berth: "proxies" not acquired: resting (capacity 2, held 0, waiting 0)`)
	})
}
