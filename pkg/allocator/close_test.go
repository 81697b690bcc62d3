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
func (w *world) desk(cfg allocator.Config[string], shut func(key string) error) *desk {
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

// closes are those of a node and of a pool, for what they have in common.
var closes = map[string]func(n *proc) error{
	"the node": func(n *proc) error { return n.node.Close(context.Background()) },
	"the pool": func(n *proc) error { return n.Pool.Close(context.Background()) },
}

// The Source is told before what is held is given back, which may take long.
func TestCloseEndsTheSourceAtOnceAndWaitsForIt(t *testing.T) {
	inEach(t, closes, func(t *testing.T, w *world, shut func(n *proc) error) {
		w.add("a")
		var told, over time.Duration
		n := w.nodeOf(allocator.Config[string]{Source: func(ctx context.Context) ([]string, error) {
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

// An Open that is under way is told to end.
func TestCloseWhileAValueIsOpened(t *testing.T) {
	inEach(t, closes, func(t *testing.T, w *world, shut func(n *proc) error) {
		w.add("a")
		n := w.nodeOf(allocator.Config[string]{Open: func(ctx context.Context, _ string) (string, error) {
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
