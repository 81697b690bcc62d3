package allocator_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
)

// Somebody has stored counts, links or lanes that do not fit what else is stored. Nobody goes round in circles.
func TestASweepAndATryEndWhateverIsStored(t *testing.T) {
	const many = 1_000_000_000_000
	for name, harm := range map[string]func(w *world){
		"too many wait":             func(w *world) { w.SetCount("waiting", many) },
		"too few wait":              func(w *world) { w.SetCount("waiting", 0) },
		"a search from nowhere":     func(w *world) { w.SetCount("waiting", many); w.SetCount("look", many-1) },
		"a damaged one without way": func(w *world) { w.damage("r1"); w.Do("HDEL", freeKey, "pr1") },
		"a way in a circle":         func(w *world) { w.damage("r1"); w.Do("HSET", freeKey, "nr1", "r1", "pr1", "r1") },
		"a lane of nobody":          func(w *world) { w.Do("HSET", stateKey, "l:r1", "600", "l:r3", "601") },
		"a moment of nobody":        func(w *world) { w.Do("ZADD", lineKey, "4538783999459328", "w:r1") },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				ctx := t.Context()
				w.add("r1", "r2")
				n := w.node()
				require.NoError(t, n.Bind(ctx, "two", "r2", nil))
				held := n.takes("r2", &allocator.AllocateOptions{Bind: "two"})
				go func() { _, _ = n.Allocate(ctx, &allocator.AllocateOptions{Bind: "two", BindWait: berth.Forever}) }()
				w.Advance(time.Second)
				harm(w)
				before := n.Count("pool_sweep") + n.Count("pool_acquire")
				_, err := n.ops().Sweep(ctx, proxies)
				require.NoError(t, err)
				_, _ = n.TryAllocate(ctx, nil)
				require.NoError(t, held.Release(ctx))
				_, _ = n.TryAllocate(ctx, &allocator.AllocateOptions{Resource: "r1"})
				w.Advance(time.Second)
				require.Less(t, n.Count("pool_sweep")+n.Count("pool_acquire")-before, 30)
			})
		})
	}
}
