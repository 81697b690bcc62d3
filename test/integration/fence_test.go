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

	"github.com/berth-go/berth/pkg/fence"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/semaphore"
)

// guard is a guard on a connection of its own.
func (b *bed) guard(edits ...func(*rueidis.ClientOption)) *fence.Redis {
	b.Helper()
	g, err := fence.NewRedis(b.server.Client(b.T, edits...), fence.RedisConfig{Namespace: b.ns})
	require.NoError(b, err)
	return g
}

func (b *bed) refused(err error, number, greatest int64) {
	b.Helper()
	require.ErrorIs(b, err, fence.ErrStale)
	var stale *fence.StaleError
	require.ErrorAs(b, err, &stale)
	require.Equal(b, number, stale.Fence)
	require.Equal(b, greatest, stale.Greatest)
}

func TestFencesAreComparedExactly(t *testing.T) {
	b := shared(t)
	g, ctx := b.guard(), b.within(patience)
	for _, number := range []int64{1, 9, 10, 1_795_222_663_450_890, 1<<53 - 1, 1 << 53, 1<<53 + 1, math.MaxInt64} {
		require.NoError(t, g.Admit(ctx, "x", number))
		require.NoError(t, g.Admit(ctx, "x", number))
		if number > 1 {
			b.refused(g.Admit(ctx, "x", number-1), number-1, number)
		}
	}
	key, err := g.Key("x")
	require.NoError(t, err)
	kept, err := b.do("HGET", key, "fence").ToString()
	require.NoError(t, err)
	require.Equal(t, strconv.FormatInt(math.MaxInt64, 10), kept)
	left, err := b.do("PTTL", key).AsInt64()
	require.NoError(t, err)
	require.Equal(t, int64(-1), left, "a guard never expires")

	require.NoError(t, g.Forget(ctx, "x", math.MaxInt64))
	require.NoError(t, g.Admit(ctx, "x", 1))
}

func TestAGuardOnAKeyOfAnotherType(t *testing.T) {
	b := shared(t)
	g := b.guard()
	b.do("SET", b.space.State(keyspace.Fence, "x"), "3")
	err := g.Admit(b.within(patience), "x", 4)
	require.ErrorContains(t, err, "holds a string instead of a hash")
	require.NotErrorIs(t, err, fence.ErrStale)
}

// Holders that go on to write when their lease is over, beside the next one: what
// a script of one's own keeps never goes back to an older hold.
func TestWritesOfOneScriptNeverFallBack(t *testing.T) {
	b := shared(t)
	script := rueidis.NewLuaScript(fence.Lua() + `
		if not admit(KEYS[1], ARGV[1]) then
			return 0
		end
		redis.call("RPUSH", KEYS[2], ARGV[1])
		return 1`)
	data, log := b.ns+":data:{x}", b.ns+":log:{x}"
	ctx := b.within(2 * patience)
	var refused atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		s, redis := b.sem(b.client(semaphore.Config{}), "x", 1), b.server.Client(t)
		write := func(number int64) {
			written, err := script.Exec(ctx, redis, []string{data, log}, []string{strconv.FormatInt(number, 10)}).AsInt64()
			if err != nil {
				t.Error(err)
			}
			refused.Add(1 - written)
		}
		wg.Go(func() {
			var before int64
			for shown := 0; shown < 5; {
				p, err := s.Acquire(ctx, &semaphore.AcquireOptions{NoRenew: true, Lease: 20 * time.Millisecond})
				if errors.Is(err, semaphore.ErrExpired) {
					continue // it has run out on its way here, as the machine had others to run
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
	written, err := b.do("LRANGE", log, "0", "-1").AsIntSlice()
	require.NoError(t, err)
	require.NotEmpty(t, written)
	require.IsNonDecreasing(t, written)
}

// The rights that docs/operations.md gives are enough for a guard.
func TestAGuardOfTheSmallestUser(t *testing.T) {
	b := private(t)
	g, ctx := b.guard(b.server.SmallestUser(t, b.ns)), b.within(patience)
	require.NoError(t, g.Admit(ctx, "x", 5))
	b.refused(g.Admit(ctx, "x", 4), 4, 5)
	require.NoError(t, g.Forget(ctx, "x", 5))
}

// A full server admits nobody new, refuses who is older, and lets go on who was
// admitted before.
func TestAGuardOnAFullServer(t *testing.T) {
	b := private(t)
	g, ctx := b.guard(), b.within(patience)
	require.NoError(t, g.Admit(ctx, "x", 5))
	require.NoError(t, g.Forget(ctx, "y", 5)) // both scripts are known
	b.fill()
	require.NoError(t, g.Admit(ctx, "x", 5))
	b.refused(g.Admit(ctx, "x", 4), 4, 5)
	err := g.Admit(ctx, "x", 6)
	require.ErrorContains(t, err, "the server is full")
	require.NotErrorIs(t, err, fence.ErrStale)
	require.NoError(t, g.Forget(ctx, "x", 5))
	b.drained()
	require.NoError(t, g.Admit(ctx, "x", 4))
}
