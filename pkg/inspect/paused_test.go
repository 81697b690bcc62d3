package inspect_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/berth-go/berth/internal/testkit"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

// pause is that which a name tells, nil for none.
func (w *world) pause(kind keyspace.Kind, name string) *berth.Pause {
	w.T.Helper()
	return testkit.Must(w.look.Name(ctx, kind, name)).In(w.T).Pause
}

func TestANameTellsItsPause(t *testing.T) {
	inWorld(t, func(w *world) {
		alpha := w.contends(nil, 0)
		ops := alpha.Operator()
		alpha.lock("thin", "", nil)
		require.NoError(w.T, ops.Pause(ctx, keyspace.Lock, "idle", time.Hour, "because"))
		require.NoError(w.T, ops.Pause(ctx, keyspace.Lock, "nightly", time.Hour, ""))
		w.Advance(time.Minute)
		told := w.pause(keyspace.Lock, "idle")
		require.Equal(w.T, []any{59 * time.Minute, "because"}, []any{told.Left, told.Reason})
		used := w.names(inspect.NameFilter{}, 100)
		require.ElementsMatch(w.T, []string{"lock idle", "lock nightly", "lock thin"}, used, "an idle name that is paused is in use")
		page := testkit.Must(w.look.Claims(ctx, inspect.ClaimFilter{Waiting: true}, "", 0)).In(w.T)
		require.Equal(w.T, 59*time.Minute, page.Items[0].Paused)

		require.NoError(w.T, ops.Unpause(ctx, keyspace.Lock, "idle"))
		require.Nil(w.T, w.pause(keyspace.Lock, "idle"))
	})
}

// All names are paused, those too that nobody has come upon since, unless an operator has set one apart.
func TestANameTellsThePauseOfAllNames(t *testing.T) {
	inWorld(t, func(w *world) {
		alpha := w.process("alpha")
		ops := alpha.Operator()
		alpha.lock("thin", "", nil)
		testkit.Must(ops.PauseAll(ctx, 10*time.Minute, "migration", keyspace.Lock)).In(w.T)
		began := time.Now()
		require.NoError(w.T, ops.Unpause(ctx, keyspace.Lock, "thin"))
		alpha.permit("", "other kind", 1, nil)
		told := w.pause(keyspace.Lock, "nobody's")
		require.Equal(w.T, "migration", told.Reason)
		require.Greater(w.T, told.Left, 9*time.Minute)
		require.Nil(w.T, w.pause(keyspace.Lock, "thin"))
		require.Nil(w.T, w.pause(keyspace.Sem, "other kind"), "each kind has its own")

		e := testkit.Must(w.look.Explain(ctx, keyspace.Lock, "nobody's", "")).In(w.T)
		require.Equal(w.T, inspect.Unknown, e.Reasons[0].Code)
		require.Equal(w.T, inspect.Paused, e.Reasons[1].Code)
		require.Contains(w.T, e.Why, `All names are paused for 9m`)
		require.Contains(w.T, e.Why, `more: "migration".`)
		w.Do("SET", "berth:lock:{idle}:state", fmt.Sprintf("%016d", time.Now().UnixMicro()))
		e = testkit.Must(w.look.Explain(ctx, keyspace.Lock, "idle", "")).In(w.T)
		require.Equal(w.T, inspect.Paused, e.Reasons[0].Code, "not free")
		w.Advance(10*time.Minute - time.Since(began))
		require.Nil(w.T, w.pause(keyspace.Lock, "nobody's"), "it has ended by itself")
	})
}
