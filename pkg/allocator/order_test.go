package allocator_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/allocator"
)

// numbered are the keys of so many resources.
func numbered(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("r%04d", i)
	}
	return keys
}

// free are the keys that FreeInOrder yields; after the resource at is called what happens
// meanwhile.
func (w *world) free(n *proc, meanwhile map[int]func()) (keys []string) {
	w.T.Helper()
	for info, err := range n.FreeInOrder(context.Background()) {
		require.NoError(w.T, err)
		keys = append(keys, info.Resource)
		if f := meanwhile[len(keys)]; f != nil {
			f()
		}
		require.LessOrEqual(w.T, len(keys), 10_000, "it goes on for ever")
	}
	unique := slices.Clone(keys)
	slices.Sort(unique)
	require.Len(w.T, slices.Compact(unique), len(keys), "each is there once")
	return keys
}

// cycle takes so many, and gives them back in that order.
func (n *proc) cycle(count int) {
	held := make([]*allocator.Allocation[string], count)
	for i := range held {
		held[i] = n.take(nil)
	}
	for _, a := range held {
		n.w.release(a)
	}
}

func TestFreeInOrderIsTheOrderInWhichClaimsGetThem(t *testing.T) {
	for policy, turned := range map[allocator.Policy]bool{allocator.LeastRecent: false, allocator.MostRecent: true} {
		for _, count := range []int{0, 1, 100, 101, 250} {
			t.Run(fmt.Sprint(policy, count), func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					n := w.nodeOf(allocator.PoolConfig[string]{Policy: policy})
					w.add(numbered(count)...)
					want := numbered(count)
					if turned {
						slices.Reverse(want)
					}
					n.Fresh()
					require.Equal(t, append([]string(nil), want...), w.free(n, nil))
					require.Equal(t, map[string]int{"pool_list": max(1, (count+99)/100)}, n.Scripts())
					for _, key := range want[:min(3, count)] {
						n.takes(key, nil)
					}
				})
			})
		}
	}
}

// What is leased, rests, has expired or is damaged is not there; what one more may hold is.
func TestFreeInOrderHasWhatTheNextClaimsMayGet(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		n := w.node()
		_, err := w.pool.Add(ctx, []string{"short"}, &allocator.AddOptions{Expiry: time.Second})
		require.NoError(t, err)
		w.add("leased", "bad", "rests", "free")
		_, err = w.pool.Add(ctx, []string{"two"}, &allocator.AddOptions{MaxSharers: 2})
		require.NoError(t, err)
		w.Do("HSET", itemsKey, "ibad", "?")
		require.Equal(t, []string{"short", "leased", "rests", "free", "two"}, w.free(n, nil))
		w.Until(time.Second)
		w.takeOne(n, "leased")
		require.NoError(t, w.pool.Rest(ctx, "rests", time.Minute, "", nil))
		require.Equal(t, []string{"free", "two"}, w.free(n, nil))
		w.takeOne(n, "free", "two")
		infos := testkit.Collect(t, n.FreeInOrder(ctx))
		require.Len(t, infos, 1)
		require.Equal(t, "two", infos[0].Resource)
		require.Equal(t, allocator.Leased, infos[0].State)
		require.Len(t, infos[0].Holders, 1)
		require.Equal(t, 2, infos[0].MaxSharers)
		for _, err := range n.FreeInOrder(ctx) {
			require.NoError(t, err)
			break // and nothing more is read
		}
	})
}

// takeOne takes these, one after the other.
func (w *world) takeOne(n *proc, resources ...string) {
	for _, resource := range resources {
		n.takes(resource, nil)
	}
}

func TestUnderRandomThereIsNoOrder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		n := w.nodeOf(allocator.PoolConfig[string]{Policy: allocator.Random})
		n.Fresh()
		for _, err := range n.FreeInOrder(context.Background()) {
			requireInvalid(t, "Policy", err)
		}
		require.Empty(t, n.Scripts())
	})
}

func TestFreeInOrderEndsWithAnError(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add(numbered(150)...)
		n := w.node()
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		seen := 0
		for _, err := range n.FreeInOrder(ctx) {
			if seen++; seen == 100 {
				cancel()
			}
			if seen <= 100 {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, context.Canceled)
			}
		}
		require.Equal(t, 101, seen)
	})
}

// Whatever comes and goes between two pages, what stays where it is comes once.
func TestWhatStaysFreeIsListedOnceWhateverComesAndGoes(t *testing.T) {
	const count = 350
	takes := func(w *world, n *proc, keys ...string) (held []*allocator.Allocation[string]) {
		for _, key := range keys {
			require.NoError(w.T, w.pool.Bind(context.Background(), key, key, nil))
			held = append(held, n.takes(key, &allocator.AllocateOptions{Bind: key}))
		}
		return held
	}
	back := func(w *world, n *proc, keys ...string) {
		for _, a := range takes(w, n, keys...) {
			w.release(a)
		}
	}
	type row struct {
		policy    allocator.Policy
		meanwhile func(w *world, n *proc)
		stays     func(i int) bool
	}
	inEach(t, map[string]row{
		"the page's first is gone": {
			meanwhile: func(w *world, n *proc) { takes(w, n, "r0100") },
			stays:     func(i int) bool { return i != 100 },
		},
		"the page's first has come back": {
			meanwhile: func(w *world, n *proc) { back(w, n, "r0100") },
			stays:     func(i int) bool { return i != 100 },
		},
		"the one before has come back": {
			meanwhile: func(w *world, n *proc) { back(w, n, "r0099") },
			stays:     func(i int) bool { return i != 99 },
		},
		"the place was passed": {
			meanwhile: func(_ *world, n *proc) { n.cycle(150) },
			stays:     func(i int) bool { return i >= 150 },
		},
		"the place was passed, and one taken": {
			meanwhile: func(_ *world, n *proc) {
				n.cycle(150)
				n.take(nil)
			},
			stays: func(i int) bool { return i > 150 },
		},
		"all of it went round": {
			meanwhile: func(_ *world, n *proc) { n.cycle(count) },
			stays:     func(int) bool { return true },
		},
		"the last comes first: the page's first has come back": {
			policy:    allocator.MostRecent,
			meanwhile: func(w *world, n *proc) { back(w, n, "r0249") },
			stays:     func(i int) bool { return i != 249 },
		},
		"the last comes first: the page's first and the one before have come back": {
			policy:    allocator.MostRecent,
			meanwhile: func(w *world, n *proc) { back(w, n, "r0249", "r0250") },
			stays:     func(i int) bool { return i != 249 && i != 250 },
		},
		"the last comes first: the place was passed": {
			policy:    allocator.MostRecent,
			meanwhile: func(_ *world, n *proc) { n.cycle(150) },
			stays:     func(i int) bool { return i < 200 },
		},
		"others were removed and added": {
			meanwhile: func(w *world, _ *proc) {
				_, err := w.pool.Remove(context.Background(), numbered(100))
				require.NoError(w.T, err)
				w.add(numbered(50)...)
			},
			stays: func(i int) bool { return i >= 100 },
		},
	}, func(t *testing.T, w *world, c row) {
		w.add(numbered(count)...)
		n := w.nodeOf(allocator.PoolConfig[string]{Policy: c.policy})
		got := w.free(n, map[int]func(){100: func() { c.meanwhile(w, n) }})
		var want []string
		for i, key := range numbered(count) {
			if c.stays(i) {
				want = append(want, key)
			}
		}
		if c.policy == allocator.MostRecent {
			slices.Reverse(want)
		}
		kept := slices.DeleteFunc(got, func(key string) bool { return !slices.Contains(want, key) })
		require.Equal(t, want, kept)
		require.LessOrEqual(t, n.Count("pool_list"), 7)
	})
}

// A list that moves on faster than it is read has no end that a reader could come to.
func TestFreeInOrderEndsThoughTheListGoesRound(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add(numbered(350)...)
		n, claims := w.node(), 0
		n.OnCommand(func(cmd link.Command) link.Fate {
			for range 120 {
				if cmd.Name != "pool_list" {
					break
				}
				claims++
				claim := fmt.Sprint("x.", claims)
				w.acquireScript("x", claim)
				w.Call("pool_release", "60000", "berth:wake:", proxies, "x", claim, "0", "0", "", "0", "0")
			}
			return link.Pass
		})
		require.NotEmpty(t, w.free(n, nil))
		require.LessOrEqual(t, n.Count("pool_list"), 12)
	})
}

// Something else than Berth has written there.
func TestFreeInOrderEndsThoughTheListIsACircle(t *testing.T) {
	for _, policy := range []allocator.Policy{allocator.LeastRecent, allocator.MostRecent} {
		t.Run(policy.String(), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.add("a", "b", "c")
				w.Do("HSET", freeKey, "nb", "a", "pb", "c")
				n := w.nodeOf(allocator.PoolConfig[string]{Policy: policy})
				require.Len(t, w.free(n, nil), 2)
			})
		})
	}
}
