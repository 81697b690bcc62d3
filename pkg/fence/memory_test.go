package fence_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/fence"
)

// Inside of Do nobody else is, and fences never fall: without that, the counter
// is a data race and the order is not whole.
func TestDoRunsOneAtATimeInTheOrderOfFences(t *testing.T) {
	t.Parallel()
	const workers, turns = 16, 200
	var g fence.Memory
	var written []int64 // guarded by the guard
	var wg sync.WaitGroup
	for worker := range workers {
		wg.Go(func() {
			for turn := range turns {
				number := int64(turn*workers + worker + 1)
				err := g.Do(t.Context(), invoice, number, func() error {
					written = append(written, number)
					return nil
				})
				if err != nil && !isStale(err) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.NotEmpty(t, written)
	require.IsIncreasing(t, written)
	require.Equal(t, int64(workers*turns), written[len(written)-1], "the greatest is never refused")
}

func isStale(err error) bool {
	_, ok := err.(*fence.StaleError) //nolint:errorlint // it is returned as it is
	return ok
}

func TestOtherCallsOfTheNameWaitForDo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g fence.Memory
		inside, leave, done := make(chan struct{}), make(chan struct{}), make(chan error, 4)
		go func() {
			done <- g.Do(t.Context(), invoice, 5, func() error {
				close(inside)
				<-leave
				return nil
			})
		}()
		<-inside
		for _, call := range []func() error{
			func() error { return g.Admit(t.Context(), invoice, 6) },
			func() error { return g.Do(t.Context(), invoice, 6, func() error { return nil }) },
			func() error { return g.Forget(t.Context(), invoice, 6) },
		} {
			go func() { done <- call() }()
		}
		require.NoError(t, g.Admit(t.Context(), "another", 1))
		time.Sleep(time.Hour)
		require.Empty(t, done)
		close(leave)
		for range cap(done) {
			require.NoError(t, <-done)
		}
	})
}

func TestTheContextEndsTheWaitForATurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g fence.Memory
		start := time.Now()
		require.NoError(t, g.Do(t.Context(), invoice, 5, func() error {
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errMine)
			defer cancel()
			err := g.Admit(ctx, invoice, 7)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorIs(t, err, errMine)
			return nil
		}))
		require.Equal(t, time.Minute, time.Since(start))
		require.NoError(t, g.Admit(t.Context(), invoice, 6), "7 was not admitted")
	})
}

func TestAFailureInDoEndsTheTurnAndKeepsTheFence(t *testing.T) {
	t.Parallel()
	var g fence.Memory
	require.Equal(t, errMine, g.Do(t.Context(), "fails", 5, func() error { return errMine }))
	require.PanicsWithValue(t, "mine", func() {
		_ = g.Do(t.Context(), "panics", 5, func() error { panic("mine") })
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, name := range []string{"fails", "panics"} {
		requireStale(t, g.Do(ctx, name, 4, func() error { panic("it ran") }), name, 4, 5)
		require.NoError(t, g.Admit(ctx, name, 5))
	}
}

func TestOnlyNamesThatWereAdmittedAreKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g fence.Memory
		ctx := t.Context()
		require.NoError(t, g.Forget(ctx, "a", 1))
		require.Error(t, g.Admit(ctx, "b", 0))
		require.Zero(t, g.Names())

		require.NoError(t, g.Do(ctx, "c", 5, func() error {
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			require.Error(t, g.Forget(short, "c", 5))
			return nil
		}))
		require.NoError(t, g.Admit(ctx, "d", 1))
		require.Equal(t, 2, g.Names())
		require.Error(t, g.Forget(ctx, "c", 4))
		require.Equal(t, 2, g.Names())
		require.NoError(t, g.Forget(ctx, "c", 5))
		require.Equal(t, 1, g.Names())
	})
}

// A name that is forgotten while others wait for their turn is still one name.
func TestForgetKeepsTheTurns(t *testing.T) {
	t.Parallel()
	var g fence.Memory
	var inside int // guarded by the guard
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 200 {
				if err := g.Do(t.Context(), invoice, 1, func() error { inside++; return nil }); err != nil {
					t.Error(err)
				}
				if err := g.Forget(t.Context(), invoice, 1); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, 16*200, inside)
	require.Zero(t, g.Names())
}
