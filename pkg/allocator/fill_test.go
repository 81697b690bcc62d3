package allocator_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
)

// slowSource is a Source that takes a while, and counts how often it was asked.
type slowSource struct {
	takes time.Duration
	asked atomic.Int64
	has   []string
	err   error
}

func (s *slowSource) list(ctx context.Context) ([]string, error) {
	s.asked.Add(1)
	select {
	case <-time.After(s.takes):
		return s.has, s.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// tries are some TryAllocates at once, and what became of them.
func (n *node) tries(ctx context.Context, count int, opts *allocator.AllocateOptions) (granted, empty int) {
	n.w.T.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	for range count {
		all.Go(func() {
			_, err := n.TryAllocate(ctx, opts)
			mu.Lock()
			defer mu.Unlock()
			var refusal *berth.AcquireError
			switch {
			case err == nil:
				granted++
			case errors.As(err, &refusal) && refusal.Reason == berth.ReasonEmpty:
				empty++
			}
		})
	}
	all.Wait()
	return granted, empty
}

func TestTheFirstTryOfAPoolWaitsForItsSource(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := &slowSource{takes: 3 * time.Second, has: []string{"a", "b", "c"}}
		n := w.nodeOf(allocator.PoolConfig[string]{Source: s.list})
		granted, _ := n.tries(context.Background(), 3, nil)
		require.Equal(t, 3, granted)
		require.GreaterOrEqual(t, w.Now(), s.takes)
		require.EqualValues(t, 1, s.asked.Load(), "all wait for the refresh under way")
	})
}

func TestATryAsksTheSourceItselfWhereAnotherNodeHasTheTurn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.nodeOf(allocator.PoolConfig[string]{Source: (&slowSource{takes: time.Hour}).list})
		synctest.Wait()
		s := &slowSource{takes: time.Second, has: many("r", 20)}
		n := w.nodeOf(allocator.PoolConfig[string]{Source: s.list})
		synctest.Wait()
		granted, _ := n.tries(context.Background(), 20, nil)
		require.Equal(t, 20, granted)
		require.EqualValues(t, 1, s.asked.Load(), "once for all")
	})
}

func TestATryOfAPoolThatWasFlushedFillsIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := &slowSource{takes: time.Second, has: []string{"a"}}
		n := w.nodeOf(allocator.PoolConfig[string]{Source: s.list})
		w.Advance(time.Minute)
		w.Do("FLUSHALL")
		granted, _ := n.tries(context.Background(), 1, nil)
		require.Equal(t, 1, granted)
		require.EqualValues(t, 2, s.asked.Load())
	})
}

func TestATryOfAPoolThatStaysEmptySaysSo(t *testing.T) {
	for name, s := range map[string]*slowSource{
		"it fails": {takes: time.Second, err: errMine}, "it has nothing": {takes: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				ctx := context.Background()
				n := w.nodeOf(allocator.PoolConfig[string]{Source: s.list})
				_, empty := n.tries(ctx, 8, nil)
				require.Equal(t, 8, empty)
				require.EqualValues(t, 1, s.asked.Load())
				_, err := n.TryAllocate(ctx, nil)
				require.ErrorContains(t, err, "the pool could not be refreshed")
				require.EqualValues(t, 1, s.asked.Load(), "a moment ago")
				w.Advance(20 * time.Second)
				before := s.asked.Load()
				_, empty = n.tries(ctx, 8, nil)
				require.Equal(t, 8, empty)
				require.LessOrEqual(t, s.asked.Load(), before+1)
			})
		})
	}
}

func TestATryWaitsForTheSourceWithinItsBounds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := &slowSource{takes: time.Hour}
		n := w.nodeOf(allocator.PoolConfig[string]{Source: s.list})
		at := w.Now()
		_, empty := n.tries(context.Background(), 1, &allocator.AllocateOptions{MaxWait: time.Second})
		require.Equal(t, 1, empty)
		require.Equal(t, time.Second, w.Now()-at)

		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := n.TryAllocate(ctx, nil)
		require.ErrorIs(t, err, berth.ErrNotAcquired)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 2*time.Second, w.Now()-at)

		left, leave := context.WithCancelCause(context.Background())
		time.AfterFunc(time.Second, func() { leave(errMine) })
		_, err = n.TryAllocate(left, nil)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, errMine)

		closed := make(chan error, 1)
		time.AfterFunc(time.Second, func() { closed <- n.client.Close(context.Background()) })
		_, err = n.TryAllocate(context.Background(), nil)
		require.ErrorIs(t, err, berth.ErrClosed)
		require.NoError(t, <-closed)
	})
}

// What a process replaces goes one after the other, whatever it is.
func TestAProcessDoesNotSupersedeItself(t *testing.T) {
	for name, other := range map[string]struct {
		do    func(n *node) error
		stays int
	}{
		"Clear":   {func(n *node) error { return change(n.Clear(context.Background())) }, 0},
		"Replace": {func(n *node) error { return change(n.Replace(context.Background(), many("o", 3), nil)) }, 3},
		"Refresh": {func(n *node) error { return change(n.Refresh(context.Background())) }, 3},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.nodeOf(allocator.PoolConfig[string]{Source: (&slowSource{has: many("s", 3)}).list})
				w.Advance(time.Second)
				ended := make(chan error, 1)
				begun := false
				replaced, err := n.Replace(context.Background(), many("r", 210), &allocator.AddOptions{
					Progress: func(int, int) {
						if !begun { // in the middle
							begun = true
							go func() { ended <- other.do(n) }()
							synctest.Wait()
						}
					},
				})
				require.NoError(t, err)
				require.Equal(t, 210, replaced.Added)
				require.NoError(t, <-ended)
				require.Equal(t, other.stays, w.inspect().Resources, "the later one decides")
			})
		})
	}
}

func TestAnotherProcessSupersedesAReplace(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, other := w.node(), w.node()
		_, err := n.Replace(context.Background(), many("r", 500), &allocator.AddOptions{
			Progress: func(done, _ int) {
				if done == 200 {
					require.NoError(t, change(other.Replace(context.Background(), []string{"a"}, nil)))
				}
			},
		})
		require.ErrorIs(t, err, allocator.ErrSuperseded)
		require.Equal(t, []string{"a"}, w.list())
	})
}

// The caller of a Replace that has to wait may leave.
func TestAReplaceThatWaitsForAnotherEndsWithItsContext(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		_, err := n.Replace(context.Background(), many("r", 300), &allocator.AddOptions{
			Progress: func(int, int) {
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				require.ErrorIs(t, change(n.Clear(ctx)), context.DeadlineExceeded)
			},
		})
		require.NoError(t, err)
		require.Equal(t, 300, w.inspect().Resources)
	})
}
