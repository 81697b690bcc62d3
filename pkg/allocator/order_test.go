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
	for info, err := range n.FreeInOrder(ctx) {
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
	n.w.release(held...)
}

func TestFreeInOrderIsTheOrderInWhichClaimsGetThem(t *testing.T) {
	for policy, turned := range map[allocator.Policy]bool{allocator.LeastRecent: false, allocator.MostRecent: true} {
		for _, count := range []int{0, 1, 100, 101, 250} {
			t.Run(fmt.Sprint(policy, count), func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					n := w.nodeOf(allocator.Config[string]{Policy: policy})
					w.add(numbered(count)...)
					want := numbered(count)
					if turned {
						slices.Reverse(want)
					}
					n.Fresh()
					require.Equal(t, append([]string(nil), want...), w.free(n, nil))
					require.Equal(t, max(1, (count+99)/100), n.Count("ZRANGE"))
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
		n := w.node()
		must(w.pool.Add(ctx, []string{"short"}, &allocator.AddOptions{Expiry: time.Second}))(t)
		w.add("leased", "bad", "rests", "free")
		must(w.pool.Add(ctx, []string{"two"}, &allocator.AddOptions{MaxSharers: 2}))(t)
		w.Do("HSET", itemsKey, "ibad", "?")
		require.Equal(t, []string{"short", "leased", "rests", "free", "two"}, w.free(n, nil))
		w.Until(time.Second)
		n.takes("leased", nil)
		require.NoError(t, w.pool.Rest(ctx, "rests", time.Minute, "", nil))
		require.Equal(t, []string{"free", "two"}, w.free(n, nil))
		n.takes("free", nil)
		n.takes("two", nil)
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

func TestFreeInOrderEndsWithAnError(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node(numbered(150)...)
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

		random := w.nodeOf(allocator.Config[string]{Policy: allocator.Random})
		random.Fresh()
		for _, err := range random.FreeInOrder(t.Context()) {
			requireInvalid(t, "Policy", err) // there is no order
		}
		require.Empty(t, random.Scripts())
	})
}

// Whatever comes and goes between two pages, what stays where it is comes once.
func TestWhatStaysFreeIsListedOnceWhateverComesAndGoes(t *testing.T) {
	const count = 350
	takes := func(w *world, n *proc, keys ...string) (held []*allocator.Allocation[string]) {
		for _, key := range keys {
			require.NoError(w.T, w.pool.Bind(ctx, key, key, nil))
			held = append(held, n.takes(key, &allocator.AllocateOptions{Bind: key}))
		}
		return held
	}
	took := func(key string) func(*world, *proc) { return func(w *world, n *proc) { takes(w, n, key) } }
	came := func(keys ...string) func(*world, *proc) {
		return func(w *world, n *proc) { w.release(takes(w, n, keys...)...) }
	}
	went := func(count int) func(*world, *proc) { return func(_ *world, n *proc) { n.cycle(count) } }
	but := func(gone ...int) func(int) bool { return func(i int) bool { return !slices.Contains(gone, i) } }
	from := func(first int) func(int) bool { return func(i int) bool { return i >= first } }
	type row struct {
		policy    allocator.Policy
		meanwhile func(w *world, n *proc)
		stays     func(i int) bool
	}
	inEach(t, map[string]row{
		"the page's first is gone":                             {0, took("r0100"), but(100)},
		"the page's first has come back":                       {0, came("r0100"), but(100)},
		"the one before has come back":                         {0, came("r0099"), but(99)},
		"the place was passed":                                 {0, went(150), from(150)},
		"the place was passed, and one taken":                  {0, func(_ *world, n *proc) { n.cycle(150); n.take(nil) }, from(151)},
		"all of it went round":                                 {0, went(count), but()},
		"the last comes first: the page's first has come back": {allocator.MostRecent, came("r0249"), but(249)},
		"the last comes first: the page's first and the one before have come back": {
			allocator.MostRecent, came("r0249", "r0250"), but(249, 250),
		},
		"the last comes first: the place was passed": {
			allocator.MostRecent, went(150), func(i int) bool { return i < 200 },
		},
		"others were removed and added": {0, func(w *world, _ *proc) {
			w.remove(numbered(100)...)
			w.add(numbered(50)...)
		}, from(100)},
	}, func(t *testing.T, w *world, c row) {
		n := w.nodeOf(allocator.Config[string]{Policy: c.policy}, numbered(count)...)
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
		require.LessOrEqual(t, n.Count("ZRANGE"), 7)
	})
}

// A list that moves on faster than it is read has no end that a reader could come to.
func TestFreeInOrderEndsThoughTheListGoesRound(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, claims := w.node(numbered(350)...), 0
		n.on("ZRANGE", func() link.Fate {
			for range 120 {
				claims++
				claim := fmt.Sprint("x.", claims)
				w.acquireScript("x", claim)
				w.releaseScript("x", claim)
			}
			return link.Pass
		})
		require.NotEmpty(t, w.free(n, nil))
		require.LessOrEqual(t, n.Count("ZRANGE"), 12)
	})
}
