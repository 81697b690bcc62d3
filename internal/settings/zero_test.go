package settings_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/once"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

// A call that failed returns a nil handle, and a defer may release it.
func TestTheReleaseOfANilHandleIsAnError(t *testing.T) {
	for _, h := range []berth.Handle{(*semaphore.Permit)(nil), (*qlock.Lock)(nil), (*qlock.LockSet)(nil), (*allocator.Allocation[string])(nil)} {
		require.ErrorIs(t, h.Release(t.Context()), berth.ErrNotHeld, "%T", h)
		require.ErrorIs(t, h.Err(), berth.ErrNotHeld, "%T", h)
	}
	require.ErrorIs(t, (*once.Run)(nil).End(t.Context(), nil), berth.ErrNotHeld)
}

func TestOptionsThatSayNothingAreNotUnknown(t *testing.T) {
	for _, of := range []any{qlock.LockOptions{}, qlock.Config{}, semaphore.AcquireOptions{}, allocator.Config[string]{}, allocator.AllocateOptions{}} {
		require.NotContains(t, fmt.Sprintf("%+v", of), "unknown")
	}
}
