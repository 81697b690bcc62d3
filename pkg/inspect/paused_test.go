package inspect_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

func TestANameTellsItsPause(t *testing.T) {
	inWorld(t, func(w *world) {
		alpha, beta := w.process("alpha"), w.process("beta")
		ops := alpha.Operator()
		pause := func(name string) (left time.Duration, reason string) {
			n := must(w.look.Name(ctx, keyspace.Lock, name)).in(w.T)
			if n.Pause == nil {
				return 0, ""
			}
			return n.Pause.Left, n.Pause.Reason
		}
		alpha.lock("held", "", nil)
		beta.awaitLock("held", "", nil)
		alpha.lock("thin", "", nil)
		require.NoError(w.T, ops.Pause(ctx, keyspace.Lock, "idle", time.Hour, "because"))
		require.NoError(w.T, ops.Pause(ctx, keyspace.Lock, "held", time.Hour, ""))
		w.Advance(time.Minute)
		left, reason := pause("idle")
		require.Equal(w.T, 59*time.Minute, left)
		require.Equal(w.T, "because", reason)
		used := w.names(inspect.NameFilter{}, 100)
		require.ElementsMatch(w.T, []string{"lock held", "lock idle", "lock thin"}, used, "an idle name that is paused is in use")
		page := must(w.look.Claims(ctx, inspect.ClaimFilter{Waiting: true}, "", 0)).in(w.T)
		require.Equal(w.T, 59*time.Minute, page.Items[0].Paused)

		require.NoError(w.T, ops.Unpause(ctx, keyspace.Lock, "idle"))
		left, _ = pause("idle")
		require.Zero(w.T, left)
	})
}

// The rest that was asked for of a leased resource begins when somebody finds the lease over, and during a pause
// nobody need look: at its end the resource may rest still.
func TestDuringAPauseARestMayBeginLater(t *testing.T) {
	inWorld(t, func(w *world) {
		alpha, beta := w.process("alpha"), w.process("beta")
		pool := beta.filled("a")
		alpha.take(alpha.pool(allocator.PoolConfig[string]{}), &allocator.AllocateOptions{NoRenew: true})
		require.NoError(w.T, pool.Rest(ctx, "a", 2*time.Second, "banned", nil))
		alpha.Die()
		w.Advance(testkit.Lease - ms)
		require.NoError(w.T, beta.Operator().Pause(ctx, keyspace.Pool, "proxies", 2100*ms, ""))
		beta.await(pool, nil)
		w.Advance(ms)
		over := time.Now()

		e := must(w.look.Explain(ctx, keyspace.Pool, "proxies", "")).in(w.T)
		require.Nil(w.T, e.Next, "%s", e)
		require.Equal(w.T, over.Add(2*time.Second-ms).UTC(), e.Horizon.UTC())
		w.Advance(500 * ms)
		must(beta.Operator().Sweep(ctx, keyspace.Pool, "proxies")).in(w.T)
		e = must(w.look.Explain(ctx, keyspace.Pool, "proxies", "")).in(w.T)
		require.Equal(w.T, inspect.RestEnds, e.Next.What, "%s", e)
		require.Equal(w.T, over.Add(2500*ms).UTC(), e.Next.At.UTC(), "it has begun now")
		require.Zero(w.T, e.Horizon)
	})
}

// All names are paused, those too that nobody has come upon since, unless an operator has set one apart.
func TestANameTellsThePauseOfAllNames(t *testing.T) {
	inWorld(t, func(w *world) {
		alpha := w.process("alpha")
		ops := alpha.Operator()
		alpha.lock("thin", "", nil)
		must(ops.PauseAll(ctx, 10*time.Minute, "migration", keyspace.Lock)).in(w.T)
		began := time.Now()
		require.NoError(w.T, ops.Unpause(ctx, keyspace.Lock, "thin"))
		alpha.permit("other kind", 1, nil)
		for name, paused := range map[string]bool{"nobody's": true, "thin": false} {
			n := must(w.look.Name(ctx, keyspace.Lock, name)).in(w.T)
			require.Equal(w.T, paused, n.Pause != nil, name)
			if paused {
				require.Equal(w.T, "migration", n.Pause.Reason)
				require.Greater(w.T, n.Pause.Left, 9*time.Minute)
			}
		}
		n := must(w.look.Name(ctx, keyspace.Sem, "other kind")).in(w.T)
		require.Nil(w.T, n.Pause, "each kind has its own")

		e := must(w.look.Explain(ctx, keyspace.Lock, "nobody's", "")).in(w.T)
		require.Equal(w.T, inspect.Unknown, e.Reasons[0].Code)
		require.Equal(w.T, inspect.Paused, e.Reasons[1].Code)
		require.Contains(w.T, e.Why, `All names are paused for 9m`)
		require.Contains(w.T, e.Why, `more: "migration".`)
		w.Do("SET", "berth:lock:{idle}:state", fmt.Sprintf("%016d", time.Now().UnixMicro()))
		e = must(w.look.Explain(ctx, keyspace.Lock, "idle", "")).in(w.T)
		require.Equal(w.T, inspect.Paused, e.Reasons[0].Code, "not free")
		w.Advance(10*time.Minute - time.Since(began))
		n = must(w.look.Name(ctx, keyspace.Lock, "nobody's")).in(w.T)
		require.Nil(w.T, n.Pause, "it has ended by itself")
	})
}
