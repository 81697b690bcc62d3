package inspect_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

// cycle is three processes in a cycle over two locks and a semaphore, which their owners, their nodes or their labels tell. It
// returns the first.
func cycle(w *world, by string) (a *process) {
	owner := func(o string) string { return o }
	if by != "owner" {
		owner = func(string) string { return "" }
	}
	a, b, c := w.process("alpha"), w.process("beta"), w.process("gamma")
	holds, waits := c, b
	if by == "label" { // a process of two nodes
		holds, waits = w.process("gamma"), w.process("beta")
	}
	a.lock("a", owner("order-1"), nil)
	w.Advance(ms)
	b.lock("b", owner("order-2"), nil)
	w.Advance(ms)
	holds.permit(owner("order-3"), "gpu", 1, nil)
	w.Advance(time.Second)
	a.awaitLock("b", owner("order-1"), nil)
	waits.awaitPermit(owner("order-2"), "gpu", 1, nil)
	c.awaitLock("a", owner("order-3"), nil)
	return a
}

func TestThreeProcessesThatWaitForEachOther(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"owner", "node", "label"} {
		inWorldOf(t, by, func(w *world) {
			alpha := cycle(w, by)
			w.Advance(500 * ms) // the registry has heard of them
			found := testkit.Must(w.look.Cycles(ctx, nil)).In(w.T)
			require.Empty(w.T, found.Problems)
			require.False(w.T, found.Partial)
			require.Equal(w.T, 3, found.Names)
			require.Len(w.T, found.Cycles, 1)
			c := found.Cycles[0]
			require.Equal(w.T, by, c.By)
			require.Equal(w.T, by == "owner", c.Certain)
			require.Len(w.T, c.Links, 3)
			require.Len(w.T, c.Release, 1)
			require.Equal(w.T, keyspace.Sem, c.Release[0].Kind, "gamma came last")
			require.Equal(w.T, "gamma", c.Release[0].Hold.Label)
			require.Empty(w.T, c.Ends, "all renew")

			n, err := alpha.Operator().Release(ctx, berth.Target{Kind: keyspace.Sem, Name: "gpu", Claim: c.Release[0].ID()})
			require.NoError(w.T, err)
			require.Equal(w.T, 1, n)
			w.Advance(time.Second)
			found = testkit.Must(w.look.Cycles(ctx, &inspect.CycleOptions{Loose: true})).In(w.T)
			require.Empty(w.T, found.Cycles)
		})
	}
}

// TestWhoWaitsForSeveralAtOnce does several things at once, so that what it holds need not be kept by its waits.
func TestWhoWaitsForSeveralAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		alpha, beta := w.process("alpha"), w.process("beta")
		alpha.lock("a", "order-1", nil)
		beta.lock("b", "order-2", nil)
		beta.lock("c", "order-3", nil)
		w.Advance(time.Second)
		alpha.awaitLock("b", "order-1", nil)
		alpha.awaitLock("c", "order-1", nil)
		beta.awaitLock("a", "order-2", nil)
		w.Advance(500 * ms)
		found := testkit.Must(w.look.Cycles(ctx, nil)).In(w.T)
		require.Empty(w.T, found.Cycles)
		require.Equal(w.T, 1, found.Skipped)
		found = testkit.Must(w.look.Cycles(ctx, &inspect.CycleOptions{Loose: true})).In(w.T)
		require.Len(w.T, found.Cycles, 1)
		require.Len(w.T, found.Cycles[0].Links, 2)
		require.False(w.T, found.Cycles[0].Certain)
	})
}

func TestWhoWaitsForNobodyIsInNoCycle(t *testing.T) {
	inWorld(t, func(w *world) {
		found := testkit.Must(w.look.Cycles(ctx, nil)).In(w.T)
		require.Zero(w.T, found.Names)
		w.process("alpha").lock("a", "", nil)
		w.process("beta").awaitLock("a", "", nil)
		w.Do("HSET", "berth:lock:{a}:state", "v", "9 words of a release to come")
		w.Advance(500 * ms)
		found = testkit.Must(w.look.Cycles(ctx, nil)).In(w.T)
		require.True(w.T, found.Partial)
		require.Len(w.T, found.Problems, 1)
		require.ErrorIs(w.T, found.Problems[0], berth.ErrIncompatible)
		require.ErrorIs(w.T, testkit.Second(w.look.Cycles(ctx, &inspect.CycleOptions{Within: -1})), berth.ErrInvalidConfig)
		ended, cancel := context.WithCancel(ctx)
		cancel()
		_, err := w.look.Cycles(ended, nil)
		require.EqualError(w.T, err, "berth: waits: context canceled", "once, not by each shard")
		require.ErrorIs(w.T, err, context.Canceled)
	})
}

// What was read of a name when the time was over counts for nothing.
func TestASearchThatIsCutOffAnywhere(t *testing.T) {
	inWorld(t, func(w *world) {
		alpha, beta := w.process("alpha"), w.process("beta")
		held := alpha.filled("p1")
		alpha.take(held, nil)
		beta.await(beta.pool(allocator.Config[string]{}), nil)
		alpha.lock("a", "order-1", nil)
		beta.awaitLock("a", "order-2", nil)
		w.Advance(500 * ms)
		// cut is a reader that is answered so many commands in time.
		cut := func(answered int64) *inspect.Reader {
			slow, sent := w.Process(), new(atomic.Int64)
			look := testkit.Must(inspect.New(slow.Redis, inspect.Config{})).In(w.T)
			slow.OnCommand(func(c link.Command) link.Fate {
				if c.Name == "HELLO" || c.Name == "CLIENT" {
					return link.Pass // a connection begins
				}
				if sent.Add(1) > answered {
					return link.Slow(time.Hour)
				}
				return link.Pass
			})
			return look
		}
		_, err := cut(0).Cycles(ctx, &inspect.CycleOptions{Within: time.Second})
		require.ErrorIs(w.T, err, berth.ErrUnavailable)
		for answered, whole := int64(1), false; !whole; answered++ {
			require.Less(w.T, answered, int64(200))
			found, err := cut(answered).Cycles(ctx, &inspect.CycleOptions{Within: time.Second})
			if errors.Is(err, berth.ErrUnavailable) && answered < 3 {
				continue // a reading asks for the time first, on one of two connections: no reading may be answered by then
			}
			require.NoError(w.T, err)
			require.Empty(w.T, found.Cycles)
			if whole = !found.Partial; whole {
				require.Equal(w.T, 2, found.Names)
			}
		}
	})
}

func TestTheCycleThatANameIsIn(t *testing.T) {
	inWorld(t, func(w *world) {
		cycle(w, "owner")
		w.process("delta").lock("quiet", "", nil)
		w.Advance(500 * ms)
		for _, of := range []berth.Ref{{Kind: keyspace.Lock, Name: "a"}, {Kind: keyspace.Sem, Name: "gpu"}} {
			c, partial, err := w.look.CycleOf(ctx, of.Kind, of.Name, time.Second)
			require.NoError(w.T, err)
			require.False(w.T, partial)
			require.Len(w.T, c.Links, 3)
		}
		look, sent := w.counted()
		sent()
		c, partial, err := look.CycleOf(ctx, keyspace.Lock, "quiet", 0)
		require.NoError(w.T, err)
		require.Nil(w.T, c)
		require.False(w.T, partial)
		require.NotContains(w.T, sent(), "ZRANGE", "nobody waits for it: nothing is searched")
		_, _, err = w.look.CycleOf(ctx, "x", "a", 0)
		require.ErrorIs(w.T, err, berth.ErrInvalidConfig)
		_, _, err = w.look.CycleOf(ctx, keyspace.Lock, "{", 0)
		require.ErrorIs(w.T, err, berth.ErrInvalidConfig)
	})
}

func TestASearchOfShortLinesSaysThatThereIsMore(t *testing.T) {
	inWorld(t, func(w *world) {
		alpha, beta := w.process("alpha"), w.process("beta")
		alpha.lock("a", "", nil)
		for range 25 {
			beta.awaitLock("a", "", nil)
		}
		w.Advance(500 * ms)
		for line, partial := range map[int]bool{0: false, 20: true, 25: false} {
			found := testkit.Must(w.look.Cycles(ctx, &inspect.CycleOptions{Line: line})).In(w.T)
			require.Equal(w.T, []any{1, partial}, []any{found.Names, found.Partial}, line)
		}
		for _, line := range []int{-1, 101} {
			require.ErrorIs(w.T, testkit.Second(w.look.Cycles(ctx, &inspect.CycleOptions{Line: line})), berth.ErrInvalidConfig)
		}
	})
}
