package integration

import (
	"errors"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/fence"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

// guard is a guard on a connection of its own.
func (w *world) guard(edits ...func(*rueidis.ClientOption)) *fence.Redis {
	w.Helper()
	g, err := fence.NewRedis(w.server.Client(w.T, edits...), fence.RedisConfig{Namespace: w.ns})
	require.NoError(w, err)
	return g
}

func (w *world) refused(err error, number, greatest int64) {
	w.Helper()
	require.ErrorIs(w, err, fence.ErrStale)
	var stale *fence.StaleError
	require.ErrorAs(w, err, &stale)
	require.Equal(w, number, stale.Fence)
	require.Equal(w, greatest, stale.Greatest)
}

func TestFencesAreComparedExactly(t *testing.T) {
	w := shared(t)
	g, ctx := w.guard(), w.Within(patience)
	for _, number := range []int64{1, 9, 10, 1_795_222_663_450_890, 1<<53 - 1, 1 << 53, 1<<53 + 1, math.MaxInt64} {
		require.NoError(t, g.Admit(ctx, "x", number))
		require.NoError(t, g.Admit(ctx, "x", number))
		if number > 1 {
			w.refused(g.Admit(ctx, "x", number-1), number-1, number)
		}
	}
	key, err := g.Key("x")
	require.NoError(t, err)
	kept, err := w.do("HGET", key, "fence").ToString()
	require.NoError(t, err)
	require.Equal(t, strconv.FormatInt(math.MaxInt64, 10), kept)
	left, err := w.do("PTTL", key).AsInt64()
	require.NoError(t, err)
	require.Equal(t, int64(-1), left, "a guard never expires")

	require.NoError(t, g.Forget(ctx, "x", math.MaxInt64))
	require.NoError(t, g.Admit(ctx, "x", 1))
}

func TestAGuardOnAKeyOfAnotherType(t *testing.T) {
	w := shared(t)
	g := w.guard()
	w.do("SET", w.space.State(keyspace.Fence, "x"), "3")
	err := g.Admit(w.Within(patience), "x", 4)
	require.ErrorContains(t, err, "holds a string instead of a hash")
	require.NotErrorIs(t, err, fence.ErrStale)
}

// Holders that go on to write when their lease is over, beside the next one: what
// a script of one's own keeps never goes back to an older hold.
func TestWritesOfOneScriptNeverFallBack(t *testing.T) {
	w := shared(t)
	script := rueidis.NewLuaScript(fence.Lua() + `
		if not admit(KEYS[1], ARGV[1]) then
			return 0
		end
		redis.call("RPUSH", KEYS[2], ARGV[1])
		return 1`)
	data, log := w.ns+":data:{x}", w.ns+":log:{x}"
	ctx := w.Within(2 * patience)
	var refused atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		s, redis := w.sem(w.node(node.Config{}), "x", 1), w.server.Client(t)
		write := func(number int64) {
			written, err := script.Exec(ctx, redis, []string{data, log}, []string{strconv.FormatInt(number, 10)}).AsInt64()
			if err != nil {
				t.Error(err)
			}
			refused.Add(1 - written)
		}
		wg.Go(func() {
			before, lease := int64(0), 20*time.Millisecond
			for shown := 0; shown < 5; {
				p, err := s.Acquire(ctx, &semaphore.AcquireOptions{NoRenew: true, Lease: lease})
				if errors.Is(err, berth.ErrExpired) {
					lease += lease // it has run out on its way here, as the machine had others to run
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				for range 3 {
					write(p.Fence())
					if before > 0 {
						write(before) // as if it woke up only now
					}
				}
				<-p.Done()
				write(p.Fence()) // the next holder is about to write
				before = p.Fence()
				shown++
			}
		})
	}
	wg.Wait()
	require.GreaterOrEqual(t, refused.Load(), int64(4*4*3), "all late writes")
	written, err := w.do("LRANGE", log, "0", "-1").AsIntSlice()
	require.NoError(t, err)
	require.NotEmpty(t, written)
	require.IsNonDecreasing(t, written)
}

// The rights that docs/operations.md gives are enough for a guard.
func TestAGuardOfTheSmallestUser(t *testing.T) {
	w := private(t)
	g, ctx := w.guard(w.server.SmallestUser(t, w.ns)), w.Within(patience)
	require.NoError(t, g.Admit(ctx, "x", 5))
	w.refused(g.Admit(ctx, "x", 4), 4, 5)
	require.NoError(t, g.Forget(ctx, "x", 5))
}

// A full server admits nobody new, refuses who is older, and lets go on who was
// admitted before.
func TestAGuardOnAFullServer(t *testing.T) {
	w := private(t)
	g, ctx := w.guard(), w.Within(patience)
	require.NoError(t, g.Admit(ctx, "x", 5))
	require.NoError(t, g.Forget(ctx, "y", 5)) // both scripts are known
	w.fill()
	require.NoError(t, g.Admit(ctx, "x", 5))
	w.refused(g.Admit(ctx, "x", 4), 4, 5)
	err := g.Admit(ctx, "x", 6)
	require.ErrorContains(t, err, "the server is full")
	require.NotErrorIs(t, err, fence.ErrStale)
	require.NoError(t, g.Forget(ctx, "x", 5))
	w.drained()
	require.NoError(t, g.Admit(ctx, "x", 4))
}
