package allocator_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
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

func TestATryIsRepeatedWhereTheSourceAnsweredBehindIt(t *testing.T) {
	type row struct{ lists, behind time.Duration }
	inEach(t, map[string]row{
		"the Source answers before the call looks": {time.Second, 1500 * ms},
		"the call looks first":                     {time.Second, 500 * ms},
	}, func(t *testing.T, w *world, c row) {
		n := w.nodeWith(node.Config{Observer: observe.Func(func(ev observe.Event) {
			if ev.Kind == observe.Refused { // between the server's word and the look at the refreshes
				time.Sleep(c.behind)
			}
		})}, allocator.Config[string]{Source: slowly(c.lists, "a")})
		require.NoError(t, second(n.TryAllocate(context.Background(), nil)))
		require.Equal(t, 2, n.Count("pool_acquire"))
	})
}

func TestATryWaitsForTheSourceWithinItsBounds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.nodeOf(allocator.Config[string]{Source: slowly(time.Hour)})
		at := w.Now()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := n.TryAllocate(ctx, nil)
		require.ErrorIs(t, err, berth.ErrNotAcquired)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Second, w.Now()-at)

		left, leave := context.WithCancelCause(context.Background())
		time.AfterFunc(time.Second, func() { leave(errMine) })
		_, err = n.TryAllocate(left, nil)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, errMine)

		closed := make(chan error, 1)
		time.AfterFunc(time.Second, func() { closed <- n.node.Close(context.Background()) })
		require.ErrorIs(t, second(n.TryAllocate(context.Background(), nil)), berth.ErrClosed)
		require.NoError(t, <-closed)
	})
}

// What a process replaces goes one after the other, whatever it is.
func TestAProcessDoesNotSupersedeItself(t *testing.T) {
	type row struct {
		do    func(n *proc) error
		stays int
	}
	inEach(t, map[string]row{
		"Clear":   {func(n *proc) error { return change(n.Clear(context.Background())) }, 0},
		"Replace": {func(n *proc) error { return change(n.Replace(context.Background(), many("o", 3), nil)) }, 3},
		"Refresh": {func(n *proc) error { return change(n.Refresh(context.Background())) }, 3},
	}, func(t *testing.T, w *world, other row) {
		n := w.nodeOf(allocator.Config[string]{Source: slowly(0, many("s", 3)...)})
		w.Advance(time.Second)
		ended := make(chan error, 1)
		begun := false
		replaced, err := n.Replace(context.Background(), many("r", 210), &allocator.AddOptions{
			Progress: func(int, int) {
				if !begun { // in the middle
					begun = true
					ctx, cancel := context.WithTimeout(context.Background(), time.Second)
					defer cancel()
					require.ErrorIs(t, change(n.Clear(ctx)), context.DeadlineExceeded, "who has to wait may leave")
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
}

// Each claim of the call is one who waits, and none is counted between two of them.
// The end of every process in these tests looks at how many wait too: see testkit.Process.Shut.
func TestTheEventsSayHowManyWaitForAHealthyResource(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		bad := 2
		n := w.nodeOf(allocator.Config[string]{
			FailureRest: time.Second,
			Healthy: func(context.Context, string) error {
				if bad--; bad >= 0 {
					return errors.New("worn out")
				}
				return nil
			},
		})
		q := testkit.Queue(ctx, w.World, func(ctx context.Context) (*allocator.Allocation[string], error) {
			return n.AllocateHealthy(ctx, nil)
		})
		require.Equal(t, 1, n.Waiting())
		w.add("a")
		<-q.Done
		require.NoError(t, q.Err)
		require.Zero(t, n.Waiting())
		require.Len(t, n.Told(observe.Queued), 3)
		require.Len(t, n.Told(observe.Granted), 3)
	})
}
