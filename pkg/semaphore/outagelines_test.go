package semaphore_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/observe/zaplog"
)

// An observer still gets an event for each hold that is silent, for each that is lost, and for each wait.
func TestAnOutageOfManyClaimsIsAFewLines(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const holds, waits = 100, 200
		core, log := observer.New(zap.WarnLevel)
		n := w.node(node.Config{Logger: zaplog.New(zap.New(core))})
		for range holds {
			n.take(holds, nil)
		}
		for range waits {
			n.queue(holds, nil)
		}
		w.Advance(lease)
		n.Cut()
		w.Advance(time.Minute)
		require.Len(t, n.Told(observe.Lost), holds)
		require.GreaterOrEqual(t, len(n.Told(observe.Unavailable)), holds+waits)
		kinds := make(map[string]int)
		for _, entry := range log.TakeAll() {
			kinds[entry.Message]++
		}
		require.Equal(t, map[string]int{"unavailable": 1, "lost": 1, "notice_failed": 1}, kinds)
		n.Mend()
		n.Shut()
		synctest.Wait()
		counted := int64(0)
		for _, entry := range log.FilterMessage("lost").TakeAll() {
			counted += entry.ContextMap()["count"].(int64)
		}
		require.EqualValues(t, holds-1, counted, "beside the first")
	})
}
