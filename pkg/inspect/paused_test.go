package inspect_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

func TestANameTellsItsPause(t *testing.T) {
	inWorld(t, func(w *world) {
		ctx := context.Background()
		alpha, beta := w.process("alpha"), w.process("beta")
		ops := alpha.locks.Operator()
		pause := func(name string) (left time.Duration, reason string) {
			n, err := w.look.Name(ctx, keyspace.Lock, name)
			require.NoError(w.T, err)
			if n.Pause == nil {
				return 0, ""
			}
			return n.Pause.Left, n.Pause.Reason
		}
		alpha.lock("held", "", nil)
		beta.awaitLock("held", "", nil)
		alpha.lock("thin", "", nil)
		require.NoError(w.T, ops.Pause(ctx, "idle", time.Hour, "because"))
		require.NoError(w.T, ops.Pause(ctx, "held", time.Hour, ""))
		w.Advance(time.Minute)
		left, reason := pause("idle")
		require.Equal(w.T, 59*time.Minute, left)
		require.Equal(w.T, "because", reason)
		require.Equal(w.T, []string{"lock held", "lock idle", "lock thin"}, w.sortedNames(), "an idle name that is paused is in use")
		page, err := w.look.Claims(ctx, inspect.ClaimFilter{Waiting: true}, "", 0)
		require.NoError(w.T, err)
		require.Equal(w.T, 59*time.Minute, page.Items[0].Paused)

		require.NoError(w.T, ops.Unpause(ctx, "idle"))
		left, _ = pause("idle")
		require.Zero(w.T, left)
	})
}

func (w *world) sortedNames() []string {
	w.T.Helper()
	names := w.names(inspect.NameFilter{}, 100)
	slices.Sort(names)
	return names
}

// All names are paused, those too that nobody has come upon since, unless an operator has set one apart.
func TestANameTellsThePauseOfAllNames(t *testing.T) {
	inWorld(t, func(w *world) {
		ctx := context.Background()
		alpha := w.process("alpha")
		ops := alpha.locks.Operator()
		alpha.lock("thin", "", nil)
		_, err := ops.PauseAll(ctx, time.Hour, "migration")
		require.NoError(w.T, err)
		began := time.Now()
		require.NoError(w.T, ops.Unpause(ctx, "thin"))
		alpha.permit("other kind", 1, nil)
		for name, paused := range map[string]bool{"nobody's": true, "thin": false} {
			n, err := w.look.Name(ctx, keyspace.Lock, name)
			require.NoError(w.T, err)
			require.Equal(w.T, paused, n.Pause != nil, name)
			if paused {
				require.Equal(w.T, "migration", n.Pause.Reason)
				require.Greater(w.T, n.Pause.Left, 59*time.Minute)
			}
		}
		n, err := w.look.Name(ctx, keyspace.Sem, "other kind")
		require.NoError(w.T, err)
		require.Nil(w.T, n.Pause, "each kind has its own")

		e, err := w.look.Explain(ctx, keyspace.Lock, "nobody's", "")
		require.NoError(w.T, err)
		require.Equal(w.T, inspect.Unknown, e.Reasons[0].Code)
		require.Equal(w.T, inspect.Paused, e.Reasons[1].Code)
		require.Contains(w.T, e.Why, `All names are paused for 59m`)
		require.Contains(w.T, e.Why, `more: "migration".`)
		w.Do("SET", "berth:lock:{idle}:state", fmt.Sprintf("%016d", time.Now().UnixMicro()))
		e, err = w.look.Explain(ctx, keyspace.Lock, "idle", "")
		require.NoError(w.T, err)
		require.Equal(w.T, inspect.Paused, e.Reasons[0].Code, "not free")
		w.Advance(time.Hour - time.Since(began))
		n, err = w.look.Name(ctx, keyspace.Lock, "nobody's")
		require.NoError(w.T, err)
		require.Nil(w.T, n.Pause, "it has ended by itself")
	})
}
