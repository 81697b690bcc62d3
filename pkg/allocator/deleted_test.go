package allocator_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
)

// The line is deleted by hand, or evicted, and the state stays: what its holder had
// comes back with the holder's heartbeat.
func TestALineOfAPoolThatIsDeletedStandsAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		w.add("r1", "r2")
		n, m := w.node(), w.node()
		x, y := n.takes("r1", nil), n.takes("r2", nil)
		first, second, third := m.queue(nil), m.queue(nil), m.queue(nil)
		w.Until(500 * ms)
		w.Do("DEL", lineKey)
		w.Until(lease/3 + 10*ms)
		require.ErrorIs(t, x.Err(), berth.ErrLost)
		require.ErrorIs(t, y.Err(), berth.ErrLost)
		for _, q := range []*wait{first, second} {
			require.False(t, q.Pending())
			require.NoError(t, q.Err)
		}
		require.True(t, third.Pending())
		require.Equal(t, []int64{2, 1}, []int64{w.Field("used"), w.Field("waiting")})
		require.Equal(t, 2, w.inspect().Leased)
		w.release(first.Got)
		held := third.Granted(w.Now())
		require.NoError(t, held.Release(ctx))
		w.release(second.Got)
		w.requireIdle()
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
	for _, field := range []string{"v", "pool"} {
		t.Run(field, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				ctx := context.Background()
				w.add("r1")
				n, m := w.node(), w.node()
				x := n.takes("r1", nil)
				q := m.queue(nil)
				before, err := w.Do("HGET", stateKey, field).ToString()
				require.NoError(t, err)
				w.Do("HSET", stateKey, field, "rubbish")
				dump := w.Dump()
				_, err = m.TryAllocate(ctx, nil)
				require.ErrorContains(t, err, "is not Berth's")
				require.ErrorContains(t, x.Renew(ctx), "is not Berth's")
				<-q.Done
				require.ErrorContains(t, q.Err, "is not Berth's")
				require.LessOrEqual(t, q.At, lease/3)
				require.Equal(t, dump, w.Dump())
				w.Do("HSET", stateKey, field, before)
				w.release(x)
			})
		})
	}
}
