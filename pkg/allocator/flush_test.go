package allocator_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/pkg/allocator"
)

// What is lost is lost as a whole: no key of an evicted pool lives on by itself, and what a call finds there counts for
// nothing.
func TestAPoolWhoseStateWasEvictedBeginsAnew(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.add("a", "b", "d")
		w.bind("customer", "b", 0)
		require.NoError(t, second(w.pool.Add(ctx, []string{"short"}, &allocator.AddOptions{Expiry: 500 * ms})))
		n := w.node()
		held := n.takes("a", nil)
		w.acquireScript("dead", "dead.1", func(r *engine.Record) { r.Lease = 500 * ms })
		w.Advance(500 * ms)
		w.Do("DEL", stateKey)
		require.ErrorIs(t, second(n.TryAllocate(ctx, nil)), berth.ErrBusy)
		require.ErrorIs(t, w.pool.Rest(ctx, "b", time.Second, "", nil), berth.ErrAbsent)
		require.ErrorIs(t, w.pool.Bind(ctx, "customer", "b", nil), berth.ErrAbsent)
		require.ErrorIs(t, held.Release(ctx), berth.ErrNotHeld)
		require.Zero(t, w.Int("EXISTS", stateKey))
		w.add("c")
		require.Equal(t, map[string]allocator.State{"c": allocator.Free}, w.states())
		w.inspect()
		n.takes("c", to("customer"))
		w.inspect()
	})
}

// Its holder is dead: an operator names the claim, or its release comes after all.
func TestAResourceWhoseLineWasDeletedComesBackByForce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("r1")
		n, m := w.node(), w.node()
		x := n.takes("r1", nil)
		q := m.queue(nil)
		n.Die()
		w.Do("DEL", lineKey)
		w.Until(lease/3 + 10*ms)
		require.True(t, q.Pending())
		require.Equal(t, []int64{0, 1}, []int64{w.Field("used"), w.Field("waiting")})
		require.NoError(t, m.force(x.ID()))
		held := q.gets(w.Now(), "r1")
		w.release(held)
		w.inspect()
	})
}

func TestCountsOfAPoolThatAreNotOursAreAnErrorAndAreLeftAlone(t *testing.T) {
	inEach(t, map[string]string{"its version": "v", "its counts": "pool"}, func(t *testing.T, w *world, field string) {
		w.add("r1")
		n, m := w.node(), w.node()
		x := n.takes("r1", nil)
		q := m.queue(nil)
		before, err := w.Do("HGET", stateKey, field).ToString()
		require.NoError(t, err)
		w.Do("HSET", stateKey, field, "rubbish")
		dump := w.Dump()
		require.ErrorContains(t, second(m.TryAllocate(t.Context(), nil)), "is not Berth's")
		require.ErrorContains(t, x.Renew(t.Context()), "is not Berth's")
		<-q.Done
		require.ErrorContains(t, q.Err, "is not Berth's")
		require.LessOrEqual(t, q.At, lease/3)
		require.Equal(t, dump, w.Dump())
		w.Do("HSET", stateKey, field, before)
		w.release(x)
	})
}
