package once_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/guard"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/once"
)

// What panics while the server's decision is read is here the observer, that hears of periods that went by.
func TestAPanicOnADecisionIsAnErrorAndLeavesNoLock(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var first sync.Once
		n := w.node(node.Config{Observer: observe.Func(func(e observe.Event) {
			if e.Kind == observe.Missed {
				first.Do(func() { panic(guard.Meant("no such index")) })
			}
		})})
		n.ran(hourly, nil)
		w.Until(2 * hour)
		_, err := n.job(hourly).Do(context.Background(), func(context.Context, *once.Run) error { return nil })
		require.ErrorContains(t, err, "a decision panicked: no such index")
		require.Len(t, n.Told(observe.Panicked), 1)
		w.Until(3 * hour)
		n.ran(hourly, nil) // the lock is free
	})
}
