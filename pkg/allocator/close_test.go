package allocator_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/allocator"
)

// desk is a process that opens and closes values, and remembers both.
type desk struct {
	*proc
	mu     sync.Mutex
	opened []string // guarded by mu
	closed []string // guarded by mu
}

// desk starts one; shut is called when a value is closed, nil for nothing.
func (w *world) desk(cfg allocator.PoolConfig[string], shut func(key string) error) *desk {
	w.T.Helper()
	d := &desk{}
	cfg.Open = func(_ context.Context, key string) (string, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.opened = append(d.opened, key)
		return key, nil
	}
	cfg.Close = func(key string) error {
		d.mu.Lock()
		d.closed = append(d.closed, key)
		d.mu.Unlock()
		if shut != nil {
			return shut(key)
		}
		return nil
	}
	d.proc = w.nodeOf(cfg)
	return d
}

// lists are what was opened and closed so far.
func (d *desk) lists() (opened, closed []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string{}, d.opened...), append([]string{}, d.closed...)
}

// requireClosed fails unless just these were closed, once.
func (d *desk) requireClosed(keys ...string) {
	d.w.T.Helper()
	synctest.Wait()
	_, closed := d.lists()
	require.ElementsMatch(d.w.T, keys, closed)
}

// closing runs a test of what Close of a node and that of a pool have in common.
func closing(t *testing.T, test func(t *testing.T, w *world, shut func(n *proc) error)) {
	t.Helper()
	for name, shut := range map[string]func(n *proc) error{
		"the node": func(n *proc) error { return n.node.Close(context.Background()) },
		"the pool": func(n *proc) error { return n.Pool.Close(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) { test(t, w, shut) })
		})
	}
}

func TestCloseEndsWaitsGivesBackAndClosesValuesOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		w.add("a", "b")
		d := w.desk(allocator.PoolConfig[string]{}, nil)
		a, b := d.takes("a", nil), d.takes("b", nil)
		q := d.queue(nil)
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				if err := d.node.Close(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
		<-q.Done
		require.ErrorIs(t, q.Err, berth.ErrClosed)
		for _, held := range []*allocator.Allocation[string]{a, b} {
			require.ErrorIs(t, held.Err(), berth.ErrReleased)
			require.NoError(t, held.Release(ctx))
		}
		require.Len(t, w.list(), 2)
		w.requireIdle()
		require.NoError(t, d.node.Close(ctx))
		d.requireClosed("a", "b")
		require.ErrorIs(t, a.Swap(ctx), berth.ErrReleased)
	})
}

// The Source is told before what is held is given back, which may take long.
func TestCloseEndsTheSourceAtOnceAndWaitsForIt(t *testing.T) {
	closing(t, func(t *testing.T, w *world, shut func(n *proc) error) {
		w.add("a")
		var told, over time.Duration
		n := w.nodeOf(allocator.PoolConfig[string]{Source: func(ctx context.Context) ([]string, error) {
			<-ctx.Done()
			told = w.Now()
			<-time.After(time.Minute)
			over = w.Now()
			return nil, ctx.Err()
		}})
		n.connect()
		n.takes("a", nil)
		n.Once("pool_release", link.LoseRequest)
		began := w.Now()
		require.NoError(t, shut(n))
		require.Equal(t, began, told)
		require.Equal(t, began+time.Minute, over)
	})
}

// A server that is gone does not keep a process from ending.
func TestCloseWithoutAServerEndsAndClosesValues(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add("a")
		d := w.desk(allocator.PoolConfig[string]{}, nil)
		held := d.takes("a", nil)
		d.Cut()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		began := w.Now()
		require.Error(t, d.node.Close(ctx))
		require.LessOrEqual(t, w.Now()-began, 10*time.Second)
		require.ErrorIs(t, held.Err(), berth.ErrReleased)
		w.Advance(time.Minute)
		d.requireClosed("a")
		d.Mend()
		require.Equal(t, allocator.Free, w.status("a").State, "its lease has ended")
	})
}

// An Open that is under way is told to end.
func TestCloseWhileAValueIsOpened(t *testing.T) {
	closing(t, func(t *testing.T, w *world, shut func(n *proc) error) {
		w.add("a")
		n := w.nodeOf(allocator.PoolConfig[string]{Open: func(ctx context.Context, _ string) (string, error) {
			<-ctx.Done()
			return "", context.Cause(ctx)
		}})
		q := n.queue(nil)
		require.True(t, q.Pending())
		require.NoError(t, shut(n))
		<-q.Done
		require.ErrorIs(t, q.Err, berth.ErrClosed)
		require.Equal(t, []string{"a"}, w.list(), "it does not rest: the resource had no say")
		w.requireIdle()
	})
}
