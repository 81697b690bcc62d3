package qlock_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/qlock"
)

// A hold ends with exactly one event, also where a Release follows within the margin
// after its local end.
func TestAHoldThatExpiredIsToldOfOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		l := n.take(&qlock.LockOptions{NoRenew: true})
		<-l.Done()
		_ = l.Release(context.Background())
		w.Advance(0)
		kinds := slices.DeleteFunc(n.Kinds(), func(k observe.Kind) bool { return k == observe.Subscribed })
		require.Equal(t, []observe.Kind{observe.Granted, observe.Expired}, kinds)
	})
}
