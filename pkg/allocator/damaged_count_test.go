package allocator_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/allocator"
)

// Somebody else may have written a count that is no number. A plain case looks at it before its first write.
func TestADamagedCountIsMetBeforeAnythingIsWritten(t *testing.T) {
	inEach(t, map[string]int{"apart": 40, "others": 57}, func(t *testing.T, w *world, at int) {
		w.add("a", "b")
		n := w.node()
		n.connect()
		require.NoError(t, w.ops().Set(ctx, proxies, "", allocator.Settings{MaxSharers: 2}))
		held := n.takes("a", nil)
		time.Sleep(time.Millisecond)
		counts := w.field(stateKey, "pool")
		w.Do("HSET", stateKey, "pool", counts[:at]+"x"+counts[at+1:])
		was := w.Dump()
		_, err := n.TryAllocate(ctx, nil)
		require.Error(t, err)
		require.Equal(t, was, w.Dump(), "an acquire")
		require.Error(t, held.Release(ctx))
		require.Equal(t, was, w.Dump(), "a release")
		w.Do("HSET", stateKey, "pool", counts)
	})
}
