package inspect_test

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

// taken is a pool of these resources that alpha holds, for which beta waits.
func taken(w *world, opts *allocator.AllocateOptions, resources ...string) {
	alpha, beta := w.process("alpha"), w.process("beta")
	pool := alpha.filled(resources...)
	for range resources {
		alpha.take(pool, nil)
	}
	beta.await(beta.pool(allocator.PoolConfig[string]{}), opts)
	w.Advance(time.Second)
}

var poolStates = map[string]state{
	"some are free": {func(w *world) string {
		w.process("alpha").filled("a", "b")
		return ""
	}, codes(inspect.Free), `Nobody waits for pool "proxies": 2 of 2 resources are free.`},
	"empty": {func(w *world) string {
		beta := w.process("beta")
		beta.await(beta.pool(allocator.PoolConfig[string]{}), nil)
		return ""
	}, codes(inspect.Empty), `1 waits for pool "proxies", beta first (0s): the pool has no resources, and no process has asked a Source. Nothing ends by itself.`},
	"empty, with a Source that fails": {func(w *world) string {
		beta := w.process("beta")
		source := func(context.Context) ([]string, error) { return nil, errors.New("out of order") }
		beta.await(beta.pool(allocator.PoolConfig[string]{Source: source, RefreshEvery: 40 * time.Second}), nil)
		w.Advance(time.Second)
		return ""
	}, codes(inspect.Empty), `1 waits for pool "proxies", beta first (1s): the pool has no resources; its Source may be asked again from 00:00:03 UTC. Nothing ends by itself.`},
	"leased": {func(w *world) string {
		taken(w, nil, "a", "b", "c")
		return ""
	}, codes(inspect.Taken), `1 waits for pool "proxies", beta first (1s): all 3 resources are leased; alpha has held it for 1s and renews it (heard of 1s ago), and 2 others hold the rest. Nothing ends by itself: alpha renews. If it is not heard of again, beta gets it in 5s.`},
	"leased, resting and leaving": {func(w *world) string {
		alpha := w.process("alpha")
		pool := alpha.filled("a", "b", "c")
		require.NoError(w.T, pool.Rest(context.Background(), "c", time.Minute, "answers 429", nil))
		alpha.take(pool, nil)
		alpha.take(pool, nil)
		_, err := pool.Remove(context.Background(), []string{"a"})
		require.NoError(w.T, err)
		beta := w.process("beta")
		beta.await(beta.pool(allocator.PoolConfig[string]{}), nil)
		w.Advance(time.Second)
		return ""
	}, codes(inspect.Taken, inspect.LeavingPool), `1 waits for pool "proxies", beta first (1s): of 3 resources 1 is leased, 1 rests and 1 leaves when it comes back; alpha has held it for 1s and renews it (heard of 1s ago), and 1 other holds the rest. Next: in 59s (00:01:00 UTC) the rest of c ends, and beta gets it.`},
	"a dead holder, with a cooldown": {func(w *world) string {
		alpha := w.process("alpha")
		pool := alpha.pool(allocator.PoolConfig[string]{Cooldown: 40 * time.Second})
		_, err := pool.Add(context.Background(), []string{"a"}, nil)
		require.NoError(w.T, err)
		alpha.take(pool, nil)
		beta := w.process("beta")
		beta.await(beta.pool(allocator.PoolConfig[string]{}), nil)
		alpha.Die()
		w.Advance(5 * time.Second)
		return ""
	}, codes(inspect.Taken), `1 waits for pool "proxies", beta first (5s): the one resource is leased; alpha has held it for 5s and has not been heard of for 5s: its process is dead, stopped or cut off. Next: unless it is heard of, in 41s (00:00:46 UTC) the lease of alpha and the rest of a after it are over, and beta gets it.`},
	"all rest": {func(w *world) string {
		pool := w.process("alpha").filled("a", "b")
		require.NoError(w.T, pool.Rest(context.Background(), "a", 20*time.Second, "answers 429", nil))
		require.NoError(w.T, pool.Rest(context.Background(), "b", 30*time.Second, "", nil))
		beta := w.process("beta")
		beta.await(beta.pool(allocator.PoolConfig[string]{}), nil)
		return ""
	}, codes(inspect.Resting), `1 waits for pool "proxies", beta first (0s): all 2 resources rest, the first for 20s more: "answers 429". Next: in 20s (00:00:20 UTC) the rest of a ends, and beta gets it.`},
	"all rest, and nobody waits": {func(w *world) string {
		pool := w.process("alpha").filled("a", "b")
		require.NoError(w.T, pool.Rest(context.Background(), "a", 20*time.Second, "answers 429", nil))
		require.NoError(w.T, pool.Rest(context.Background(), "b", berth.Forever, "banned", nil))
		return ""
	}, codes(inspect.Resting), `Nobody waits for pool "proxies": all 2 resources rest, the first for 20s more: "answers 429".`},
	"all rest for ever": {func(w *world) string {
		pool := w.process("alpha").filled("a")
		require.NoError(w.T, pool.Rest(context.Background(), "a", berth.Forever, "banned", nil))
		beta := w.process("beta")
		beta.await(beta.pool(allocator.PoolConfig[string]{}), nil)
		return ""
	}, codes(inspect.Resting), `1 waits for pool "proxies", beta first (0s): the one resource rests until somebody ends that: "banned". Nothing ends by itself.`},
	"one that is held": {func(w *world) string {
		taken(w, &allocator.AllocateOptions{Resource: "a"}, "a", "b")
		return ""
	}, codes(inspect.OneHeld), `1 waits for pool "proxies", beta first (1s): it wants only a, which alpha has held for 1s and renews (heard of 1s ago). Nothing ends by itself: alpha renews. If it is not heard of again, beta gets it in 5s.`},
	"one that rests": {func(w *world) string {
		pool := w.process("alpha").filled("a", "b")
		require.NoError(w.T, pool.Rest(context.Background(), "a", 20*time.Second, "banned", nil))
		beta := w.process("beta")
		beta.await(beta.pool(allocator.PoolConfig[string]{}), &allocator.AllocateOptions{Resource: "a"})
		return w.waiting(keyspace.Pool, "proxies", "beta")
	}, codes(inspect.OneResting), `beta has waited 0s for pool "proxies": it wants only a, which rests for 20s more: "banned". Next: in 20s (00:00:20 UTC) the rest of a ends, and beta gets it.`},
	"one that is damaged": {func(w *world) string {
		taken(w, &allocator.AllocateOptions{Resource: "a"}, "a")
		w.Do("HSET", "berth:pool:{proxies}:items", "ia", "rubbish")
		return ""
	}, codes(inspect.OneDamaged, inspect.Damaged), `1 waits for pool "proxies", beta first (1s): it wants only a, which is damaged. What is stored of a is damaged. Nothing ends by itself.`},
	"one that was removed during a pause": {func(w *world) string {
		alpha, beta := w.process("alpha"), w.process("beta")
		pool := alpha.filled("a", "b")
		alpha.take(pool, nil)
		beta.await(beta.pool(allocator.PoolConfig[string]{}), &allocator.AllocateOptions{Resource: "a"})
		require.NoError(w.T, alpha.Operator().Pause(context.Background(), keyspace.Pool, "proxies", 20*time.Second, ""))
		_, err := pool.Remove(context.Background(), []string{"a"})
		require.NoError(w.T, err)
		return w.waiting(keyspace.Pool, "proxies", "beta")
	}, codes(inspect.Paused, inspect.OneHeld), `beta has waited 0s for pool "proxies": it is paused for 20s more; and it wants only a, which alpha has held for 0s and renews (heard of 0s ago). Next: in 20s (00:00:20 UTC) a leaves the pool, and the wait with it.`},
	"a free one during a pause": {func(w *world) string {
		alpha, beta := w.process("alpha"), w.process("beta")
		alpha.filled("a", "b")
		require.NoError(w.T, alpha.Operator().Pause(context.Background(), keyspace.Pool, "proxies", 20*time.Second, ""))
		beta.await(beta.pool(allocator.PoolConfig[string]{}), &allocator.AllocateOptions{Resource: "a"})
		return w.waiting(keyspace.Pool, "proxies", "beta")
	}, codes(inspect.Paused), `beta has waited 0s for pool "proxies": it is paused for 20s more. Next: in 20s (00:00:20 UTC) the pause ends, and beta gets it.`},
	"a free one leaves during a pause": {func(w *world) string {
		alpha, beta := w.process("alpha"), w.process("beta")
		pool := alpha.filled("a")
		_, err := pool.Add(context.Background(), []string{"b"}, &allocator.AddOptions{Expiry: 10 * time.Second})
		require.NoError(w.T, err)
		require.NoError(w.T, alpha.Operator().Pause(context.Background(), keyspace.Pool, "proxies", 20*time.Second, ""))
		same := beta.pool(allocator.PoolConfig[string]{})
		beta.await(same, nil)
		beta.await(same, nil)
		return ""
	}, codes(inspect.Paused), `2 wait for pool "proxies", beta first (0s): it is paused for 20s more. Next: in 20s (00:00:20 UTC) the pause ends, and beta gets it, others perhaps.`},
	"more leave during a pause than are read": {func(w *world) string {
		alpha, beta := w.process("alpha"), w.process("beta")
		pool := alpha.filled("a")
		for n := range 11 {
			_, err := pool.Add(context.Background(), []string{strconv.Itoa(n)}, &allocator.AddOptions{Expiry: time.Duration(n+1) * time.Second})
			require.NoError(w.T, err)
		}
		require.NoError(w.T, alpha.Operator().Pause(context.Background(), keyspace.Pool, "proxies", 20*time.Second, ""))
		beta.await(beta.pool(allocator.PoolConfig[string]{}), nil)
		return ""
	}, codes(inspect.Paused), `1 waits for pool "proxies", beta first (0s): it is paused for 20s more. Next: not known beyond 00:00:10 UTC.`},
	"one that is lost": {func(w *world) string {
		taken(w, &allocator.AllocateOptions{Resource: "a"}, "a")
		w.Do("FLUSHALL")
		w.Advance(3 * time.Second)
		return ""
	}, codes(inspect.OneAbsent), `1 waits for pool "proxies", beta first (4s): it wants only a, which is not in the pool: nothing has filled it yet. Nothing ends by itself.`},
	"one that it is bound to": {func(w *world) string {
		alpha := w.process("alpha")
		pool := alpha.filled("a", "b")
		alpha.take(pool, &allocator.AllocateOptions{Bind: "customer-7", BindFor: time.Hour})
		beta := w.process("beta")
		beta.await(beta.pool(allocator.PoolConfig[string]{}), &allocator.AllocateOptions{Bind: "customer-7", BindWait: 15 * time.Second, BindFor: time.Hour})
		w.Advance(time.Second)
		return ""
	}, codes(inspect.OneHeld, inspect.Bound), `1 waits for pool "proxies", beta first (1s): it waits for a, which "customer-7" is bound to and which alpha has held for 1s and renews (heard of 1s ago); in 14s it takes any other. Next: in 14s (00:00:15 UTC) the wait for a alone ends, and beta gets it.`},
	"one that it is bound to, during a longer pause": {func(w *world) string {
		alpha, beta := w.process("alpha"), w.process("beta")
		pool := alpha.filled("a", "b")
		alpha.take(pool, &allocator.AllocateOptions{Bind: "customer-7", BindFor: time.Hour})
		require.NoError(w.T, alpha.Operator().Pause(context.Background(), keyspace.Pool, "proxies", 20*time.Second, ""))
		beta.await(beta.pool(allocator.PoolConfig[string]{}), &allocator.AllocateOptions{Bind: "customer-7", BindWait: 5 * time.Second, BindFor: time.Hour})
		w.Advance(time.Second)
		return w.waiting(keyspace.Pool, "proxies", "beta")
	}, codes(inspect.Paused, inspect.OneHeld, inspect.Bound), `beta has waited 1s for pool "proxies": it is paused for 19s more; and it waits for a, which "customer-7" is bound to and which alpha has held for 1s and renews (heard of 1s ago); in 19s it takes any other. Next: in 19s (00:00:20 UTC) the wait for a alone ends, and beta gets it.`},
}
