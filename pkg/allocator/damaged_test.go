package allocator_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/observe"
)

const rubbish = "rubbish"

// damage writes over what the server has of resources.
func (w *world) damage(resources ...string) {
	w.T.Helper()
	for _, resource := range resources {
		w.Do("HSET", itemsKey, "i"+resource, rubbish)
	}
}

// told are the resources that a node has told to be damaged.
func (n *proc) told() []string {
	synctest.Wait()
	told := []string{}
	for _, ev := range n.Told(observe.Damaged) {
		told = append(told, ev.Resource)
	}
	return told
}

// isDamaged is what Inspect says of a damaged resource.
func isDamaged(resource string) string {
	return fmt.Sprintf("the item of the resource %q cannot be read: remove the resource, or add it again", resource)
}

// What is in the list of free ones and is not free, by its item, comes off the list.
func TestWhatIsListedWithoutBeingFreeStopsNobody(t *testing.T) {
	inEach(t, map[string]func(w *world){
		"its item is gone":    func(w *world) { w.Do("HDEL", itemsKey, "ir1") },
		"its item is leaving": func(w *world) { w.Do("HSET", itemsKey, "ir1", "1 0 0 0 0 1 0 ") },
	}, func(t *testing.T, w *world, harm func(w *world)) {
		w.add("r1", "r2")
		harm(w)
		w.node().takes("r2", nil)
		require.Empty(t, w.list())
	})
}

func TestADamagedResourceStopsNobody(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		w.add("r1", "r2")
		w.damage("r1")
		require.Equal(t, []string{isDamaged("r1")}, w.inspection().Problems, "before anybody has met it")
		a := n.takes("r2", nil)
		require.Equal(t, []string{"r1"}, n.told(), "by the node whose call has met it")
		require.Equal(t, rubbish, w.field(itemsKey, "ir1"), "it is left as it is")
		require.Empty(t, w.list())

		waits := n.queue(nil)
		require.True(t, waits.Pending(), "it is for nobody")
		w.release(a)
		b := waits.gets(w.Now(), "r2")
		require.ErrorIs(t, second(n.TryAllocate(t.Context(), nil)), berth.ErrBusy)
		require.Equal(t, []string{"r1"}, n.told(), "once")

		require.Equal(t, map[string]allocator.State{"r1": allocator.Damaged, "r2": allocator.Leased}, w.states())
		require.Equal(t, allocator.Damaged, w.status("r1").State)
		found := w.inspection()
		require.Equal(t, []string{isDamaged("r1")}, found.Problems)
		require.Equal(t, counts{Resources: 2, Leased: 1, Holders: 1}, countsOf(found))
		w.release(b)

		added, err := n.Add(t.Context(), []string{"r1", "r2"}, nil)
		changed(t, added, err)(0, 2, 0)
		require.Equal(t, counts{Resources: 2, Free: 2}, w.inspect())
		require.Equal(t, []string{"r2", "r1"}, w.list())
		w.damage("r1")
		n.takes("r2", nil)
		require.True(t, n.queue(nil).Pending(), "it waits")
		require.Equal(t, []string{"r1", "r1"}, n.told(), "it was whole in between")
	})
}

// Also one that somebody made by hand, which was never in the list, nor in the counts.
func TestADamagedResourceCanBeRemoved(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		w.add("r1", "r2", "r3")
		w.damage("r1", "r3", "r9")
		removed, err := n.Remove(t.Context(), []string{"r1", "r9"})
		changed(t, removed, err)(0, 0, 2)
		require.Equal(t, []string{isDamaged("r3")}, w.inspection().Problems)
		replaced, err := n.Replace(t.Context(), []string{"r2", "r4"}, nil)
		changed(t, replaced, err)(1, 1, 1)
		require.Equal(t, []string{"r2", "r4"}, w.list())
		w.damage("r2")
		cleared, err := n.Clear(t.Context())
		changed(t, cleared, err)(0, 0, 2)
		require.Equal(t, counts{}, w.inspect())
		require.Empty(t, n.told(), "nothing that ran had to do without them")
	})
}

func TestATryFindsAResourceBehindMoreDamageThanOneRunTakesAway(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		bad := many("bad", 250)
		w.add(append(bad, "good")...)
		w.damage(bad...)
		n.Fresh()
		a, err := n.TryAllocate(context.Background(), nil)
		require.NoError(t, err)
		require.Equal(t, "good", a.Resource())
		require.Equal(t, 3, n.Count("pool_acquire"), "at most 100 in one script")
		require.ElementsMatch(t, bad, n.told())
		require.Equal(t, 7, n.Count("pool_sweep"), "each tells of 100")
	})
}

func TestWhatIsHeldStaysHeldThroughDamage(t *testing.T) {
	ctx := context.Background()
	type row struct {
		mend func(n *proc) error
		left counts
	}
	stays := counts{Resources: 1, Free: 1}
	inEach(t, map[string]row{
		"add":     {func(n *proc) error { return change(n.Add(ctx, []string{"r1"}, nil)) }, stays},
		"remove":  {func(n *proc) error { return change(n.Remove(ctx, []string{"r1"})) }, counts{}},
		"replace": {func(n *proc) error { return change(n.Replace(ctx, []string{"r1"}, nil)) }, stays},
		"clear":   {func(n *proc) error { return change(n.Clear(ctx)) }, counts{}},
	}, func(t *testing.T, w *world, c row) {
		n := w.node()
		w.add("r1")
		a := n.takes("r1", nil)
		w.damage("r1")
		w.Advance(2 * lease)
		require.NoError(t, a.Err(), "heartbeats go on")
		require.NoError(t, c.mend(n))
		require.Equal(t, a.ID(), w.holder("r1"))
		require.ErrorIs(t, second(n.TryAllocate(ctx, nil)), berth.ErrBusy)
		require.Equal(t, c.left == counts{}, w.status("r1").Leaving)
		w.release(a)
		require.Equal(t, c.left, w.inspect())
	})
}

func TestWhatComesBackDamagedIsForNobodyAndTold(t *testing.T) {
	inEach(t, map[string]func(w *world, n *proc, a *allocator.Allocation[string]){
		"released": func(w *world, _ *proc, a *allocator.Allocation[string]) { w.release(a) },
		"expired": func(w *world, n *proc, _ *allocator.Allocation[string]) {
			n.Cut()
			w.Advance(2 * lease)
			n.Mend()
			require.NoError(w.T, second(n.ops().Sweep(context.Background(), proxies)))
		},
		"swapped": func(w *world, n *proc, a *allocator.Allocation[string]) {
			w.add("r2")
			require.NoError(w.T, a.Swap(context.Background()))
			w.release(a)
			require.NoError(w.T, change(w.pool.Remove(context.Background(), []string{"r2"})))
		},
		"by force": func(w *world, n *proc, a *allocator.Allocation[string]) { require.NoError(w.T, n.force(a.ID())) },
	}, func(t *testing.T, w *world, end func(w *world, n *proc, a *allocator.Allocation[string])) {
		n := w.node()
		w.add("r1")
		a := n.takes("r1", nil)
		w.damage("r1")
		end(w, n, a)
		require.Equal(t, []string{"r1"}, n.told())
		found := w.inspection()
		require.Equal(t, []string{isDamaged("r1")}, found.Problems)
		require.Equal(t, counts{Resources: 1}, countsOf(found))
		require.Negative(t, w.Expiry(), "a pool with resources is kept")
	})
}

func second[T any](_ T, err error) error { return err }

func TestWhatWasLeavingOrRestingIsWholeAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		n := w.node()
		w.add("leaves", "rests", "expires")
		a := n.takes("leaves", nil)
		require.NoError(t, change(n.Remove(ctx, []string{"leaves"})))
		require.NoError(t, n.Rest(ctx, "rests", time.Minute, "mine", nil))
		require.NoError(t, change(n.Add(ctx, []string{"expires"}, &allocator.AddOptions{Expiry: time.Minute})))
		w.damage("leaves", "rests", "expires")
		found := w.inspection()
		require.Equal(t, counts{
			Resources: 3, Free: 1, Leased: 1, Resting: 1, Leaving: 1, Holders: 1,
		}, countsOf(found))
		require.Len(t, found.Problems, 3)
		w.Advance(2 * time.Minute)
		require.NoError(t, second(n.ops().Sweep(ctx, proxies)))
		require.ElementsMatch(t, []string{"rests", "expires"}, n.told())
		w.release(a)
		require.ElementsMatch(t, []string{"rests", "expires", "leaves"}, n.told())
		found = w.inspection()
		require.Equal(t, counts{Resources: 3, Leaving: 1}, countsOf(found))
		w.add("leaves", "rests", "expires")
		require.Equal(t, counts{Resources: 3, Free: 3}, w.inspect())
		require.Negative(t, w.Expiry(), "a pool with resources is kept")
	})
}

// Whatever cannot be an item's text.
func TestWhatCannotBeReadIsDamaged(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		w.add("r1")
		for _, text := range []string{
			"", rubbish, "1 0 0 0", "1 0 0 0 0 0 2 a.1 ", "1 0 0 0 0 0 99999999999 ", "0 0 0 0 0 0 0 ", "x 0 0 0 0 0 0 ",
			"1 99999999999999999999 0 0 0 0 0 ", "1 0 99999999999999999999 0 0 0 0 ", "1 0 0 0 0 0 0", "\xff\x00 1",
		} {
			w.Do("HSET", itemsKey, "ir1", text)
			require.Equal(t, allocator.Damaged, w.status("r1").State, "%q", text)
			require.Equal(t, []string{isDamaged("r1")}, w.inspection().Problems, "%q", text)
			require.ErrorIs(t, second(n.TryAllocate(t.Context(), nil)), berth.ErrBusy, "%q", text)
			require.Equal(t, []string{"r1"}, n.told(), "%q", text)
			require.Equal(t, text, w.field(itemsKey, "ir1"), "it is left as it is")
			w.add("r1")
			n.Fresh()
		}
	})
}

// Whatever is asked: no call fails because of it, nor where half of it can be read.
func TestNoCallFailsBecauseOfADamagedItem(t *testing.T) {
	inEach(t, map[string]string{
		"all of it": rubbish, "half of it": "1 0 0 0 0 0 2 a.1 ",
	}, func(t *testing.T, w *world, text string) {
		ctx := context.Background()
		n := w.nodeOf(allocator.Config[string]{
			Open: func(_ context.Context, key string) (string, error) { return key, nil }, RefreshEvery: time.Hour,
		})
		w.add("r1", "r2")
		held := n.takes("r1", to("me"))
		w.Do("HSET", itemsKey, "ir1", text)

		require.ErrorIs(t, n.Rest(ctx, "r1", time.Second, "", nil), berth.ErrAbsent)
		require.ErrorIs(t, n.Bind(ctx, "you", "r1", nil), berth.ErrAbsent)
		bound, _ := w.binding("me")
		require.Empty(t, bound)
		require.Empty(t, testkit.Collect(t, n.ops().Bindings(ctx, proxies)))
		require.NoError(t, held.Renew(ctx))
		held, err := n.Resume(ctx, detach(t, held))
		require.NoError(t, err)
		w.release(held)
		a := n.takes("r2", to("me"))
		require.ErrorIs(t, a.Swap(ctx), berth.ErrBusy)
		w.release(a)
		report, err := n.CheckHealth(ctx, 1)
		require.NoError(t, err)
		require.Equal(t, allocator.HealthReport{Checked: 1, Healthy: 1, Skipped: 1}, report)
		require.NoError(t, second(n.ops().Sweep(ctx, proxies)))
		require.Equal(t, map[string]allocator.State{"r1": allocator.Damaged, "r2": allocator.Free}, w.states())
		require.Equal(t, allocator.Damaged, w.status("r1").State)
		require.Equal(t, []string{isDamaged("r1")}, w.inspection().Problems)
		require.Equal(t, text, w.field(itemsKey, "ir1"))
		require.Equal(t, []string{"r1"}, n.told())
		w.add("r1")
		require.Equal(t, counts{Resources: 2, Free: 2}, w.inspect())
	})
}

// The pool is whole again whatever was damaged, in the middle of anything.
func TestAPoolIsWholeAgainAfterAnyDamage(t *testing.T) {
	inEach(t, map[string]uint64{"0": 0, "1": 1, "2": 2}, func(t *testing.T, w *world, seed uint64) {
		ctx := context.Background()
		rng := rand.New(rand.NewPCG(seed, 7))
		keys := []string{"a", "b", "c", "d"}
		key := func() string { return keys[rng.IntN(len(keys))] }
		n := w.nodeOf(allocator.Config[string]{MaxSharers: 1 + int(seed%3)})
		var held []*allocator.Allocation[string]
		require.NoError(t, change(n.Add(ctx, keys, nil)))
		for range 60 {
			switch rng.IntN(9) {
			case 0, 1, 2:
				a, err := n.TryAllocate(ctx, &allocator.AllocateOptions{Bind: "me"})
				if err == nil {
					held = append(held, a)
					require.NotEqual(t, allocator.Damaged, w.status(a.Resource()).State)
				} else {
					require.ErrorIs(t, err, berth.ErrBusy)
				}
			case 3:
				if len(held) > 0 {
					require.NoError(t, held[0].Release(ctx))
					held = held[1:]
				}
			case 4:
				if k := key(); w.Int("HEXISTS", itemsKey, "i"+k) == 1 {
					w.damage(k)
				}
			case 5:
				require.NoError(t, change(n.Add(ctx, []string{key()}, &allocator.AddOptions{
					Expiry: []time.Duration{0, 3 * time.Second}[rng.IntN(2)],
				})))
			case 6:
				require.NoError(t, change(n.Remove(ctx, []string{key()})))
			case 7:
				if err := n.Rest(ctx, key(), time.Second, "mine", nil); !errors.Is(err, berth.ErrAbsent) {
					require.NoError(t, err)
				}
			case 8:
				w.Advance(time.Duration(rng.IntN(4000)) * ms)
			}
			synctest.Wait()
			found, err := n.ops().Inspect(ctx, proxies)
			require.NoError(t, err)
			for _, problem := range found.Problems {
				require.True(t, strings.HasSuffix(problem, "or add it again"), "seed %d: %s", seed, problem)
			}
		}
		require.NoError(t, change(n.Add(ctx, keys, nil)))
		synctest.Wait()
		w.inspect()
		require.Negative(t, w.Expiry(), "a pool with resources is kept")
		for _, a := range held {
			require.Equal(t, allocator.Leased, w.status(a.Resource()).State)
			require.NoError(t, a.Release(ctx))
		}
		w.Advance(time.Minute)
		require.NoError(t, second(n.ops().Sweep(ctx, proxies)))
		require.Equal(t, counts{Resources: 4, Free: 4}, w.inspect())
	})
}
