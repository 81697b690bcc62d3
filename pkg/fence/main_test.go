package fence_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/berthtest"
	"github.com/berth-go/berth/pkg/fence"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	invoice    = "invoice:42"
	invoiceKey = "berth:fence:{invoice:42}:state"
)

var errMine = errors.New("my own reason")

// guard is what both guards are.
type guard interface {
	Admit(ctx context.Context, name string, fence int64) error
	Forget(ctx context.Context, name string, fence int64) error
}

// onBoth runs a test on a guard of each kind.
func onBoth(t *testing.T, test func(t *testing.T, g guard)) {
	t.Helper()
	t.Parallel()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		test(t, new(fence.Memory))
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		test(t, newRedis(t, berthtest.Redis(t)))
	})
}

func newRedis(t *testing.T, redis rueidis.Client) *fence.Redis {
	t.Helper()
	return must(fence.NewRedis(redis, fence.RedisConfig{}))(t)
}

// must is what a call has returned, which must have worked.
func must[T any](got T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		require.NoError(t, err)
		return got
	}
}

// requireStale fails unless err says that a fence was refused after a greater one.
func requireStale(t *testing.T, err error, name string, refused, greatest int64) {
	t.Helper()
	require.ErrorIs(t, err, fence.ErrStale)
	var stale *fence.StaleError
	require.ErrorAs(t, err, &stale)
	require.Equal(t, fence.StaleError{Name: name, Fence: refused, Greatest: greatest}, *stale)
	require.NotErrorIs(t, err, berth.ErrNotHeld)
}

// micros is a fence as they are: the server's time in microseconds.
const micros = 1_795_222_663_450_890

func TestOlderFencesAreRefused(t *testing.T) {
	onBoth(t, func(t *testing.T, g guard) {
		const exact = 1 << 53 // from here on a double skips numbers
		var greatest int64
		for _, fence := range []int64{
			1, 1, 9, 8,
			10, 9, // as text "10" comes before "9"
			micros, micros - 1, 10, micros, micros + 1,
			exact - 2, exact - 1, exact - 2, exact - 1, exact, exact + 1, exact, exact + 2, exact + 1,
			math.MaxInt64 - 1, math.MaxInt64, math.MaxInt64 - 1, math.MaxInt64,
		} {
			err := g.Admit(t.Context(), invoice, fence)
			if fence >= greatest {
				require.NoError(t, err, fence)
				greatest = fence
			} else {
				requireStale(t, err, invoice, fence, greatest)
			}
		}
		require.NoError(t, g.Admit(t.Context(), "another", 1), "names are apart")
	})
}

func TestWhatIsNoFenceOrNoNameIsRefused(t *testing.T) {
	onBoth(t, func(t *testing.T, g guard) {
		for _, call := range []func(context.Context, string, int64) error{g.Admit, g.Forget} {
			for _, number := range []int64{0, -1, math.MinInt64} {
				err := call(t.Context(), invoice, number)
				requireStale(t, err, invoice, number, 0)
				require.ErrorContains(t, err, "is not above 0")
			}
			var refused *berth.ConfigError
			require.ErrorAs(t, call(t.Context(), "a{b", 1), &refused)
			require.Equal(t, "name", refused.Field)
		}
		require.NoError(t, g.Admit(t.Context(), invoice, 1))
	})
}

func TestAContextThatHasEndedAdmitsNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, g guard) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errMine)
		for range 20 { // where a select tosses a coin
			err := g.Admit(ctx, invoice, 7)
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, err, errMine)
			require.NotErrorIs(t, err, fence.ErrStale)
		}
		require.NoError(t, g.Admit(t.Context(), invoice, 6), "7 was not admitted")
	})
}

func TestForget(t *testing.T) {
	onBoth(t, func(t *testing.T, g guard) {
		ctx := t.Context()
		require.NoError(t, g.Forget(ctx, invoice, 3), "nothing is known")
		require.NoError(t, g.Admit(ctx, invoice, 5))
		requireStale(t, g.Forget(ctx, invoice, 4), invoice, 4, 5)
		requireStale(t, g.Admit(ctx, invoice, 4), invoice, 4, 5)
		require.NoError(t, g.Forget(ctx, invoice, 5))
		require.NoError(t, g.Admit(ctx, invoice, 1), "all is forgotten")
		require.NoError(t, g.Forget(ctx, invoice, 9), "a later hold may forget, too")
		require.NoError(t, g.Admit(ctx, invoice, 1))
	})
}
