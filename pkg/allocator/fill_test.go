package allocator_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
)

// slowly is a Source that takes a while.
func slowly(takes time.Duration, resources ...string) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		select {
		case <-time.After(takes):
			return resources, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func TestTheFirstTryOfAPoolWaitsForItsSource(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.nodeOf(allocator.PoolConfig[string]{Source: slowly(3*time.Second, "a")})
		_, err := n.TryAllocate(context.Background(), nil)
		require.NoError(t, err)
		require.GreaterOrEqual(t, w.Now(), 3*time.Second)
	})
}

func TestATryIsRepeatedWhereTheSourceAnsweredBehindIt(t *testing.T) {
	for name, c := range map[string]struct{ lists, behind time.Duration }{
		"the Source answers before the call looks": {time.Second, 1500 * ms},
		"the call looks first":                     {time.Second, 500 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.nodeWith(node.Config{Observer: observe.Func(func(ev observe.Event) {
					if ev.Kind == observe.Refused { // between the server's word and the look at the refreshes
						time.Sleep(c.behind)
					}
				})}, allocator.PoolConfig[string]{Source: slowly(c.lists, "a")})
				_, err := n.TryAllocate(context.Background(), nil)
				require.NoError(t, err)
				require.Equal(t, 2, n.Count("pool_acquire"))
			})
		})
	}
}

func TestATryWaitsForTheSourceWithinItsBounds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.nodeOf(allocator.PoolConfig[string]{Source: slowly(time.Hour)})
		at := w.Now()
		_, err := n.TryAllocate(context.Background(), &allocator.AllocateOptions{MaxWait: time.Second})
		var refusal *berth.AcquireError
		require.ErrorAs(t, err, &refusal)
		require.Equal(t, berth.ReasonEmpty, refusal.Reason)
		require.Equal(t, time.Second, w.Now()-at)

		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err = n.TryAllocate(ctx, nil)
		require.ErrorIs(t, err, berth.ErrNotAcquired)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 2*time.Second, w.Now()-at)

		left, leave := context.WithCancelCause(context.Background())
		time.AfterFunc(time.Second, func() { leave(errMine) })
		_, err = n.TryAllocate(left, nil)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, errMine)

		closed := make(chan error, 1)
		time.AfterFunc(time.Second, func() { closed <- n.node.Close(context.Background()) })
		_, err = n.TryAllocate(context.Background(), nil)
		require.ErrorIs(t, err, berth.ErrClosed)
		require.NoError(t, <-closed)
	})
}

// What a process replaces goes one after the other, whatever it is.
func TestAProcessDoesNotSupersedeItself(t *testing.T) {
	for name, other := range map[string]struct {
		do    func(n *proc) error
		stays int
	}{
		"Clear":   {func(n *proc) error { return change(n.Clear(context.Background())) }, 0},
		"Replace": {func(n *proc) error { return change(n.Replace(context.Background(), many("o", 3), nil)) }, 3},
		"Refresh": {func(n *proc) error { return change(n.Refresh(context.Background())) }, 3},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.nodeOf(allocator.PoolConfig[string]{Source: slowly(0, many("s", 3)...)})
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
		require.ErrorIs(t, err, berth.ErrStale)
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
