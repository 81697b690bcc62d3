package allocator_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/observe"
)

// list is a Source whose answer changes.
type list struct {
	mu     sync.Mutex
	answer []string // guarded by mu
	asks   int      // guarded by mu
}

func (l *list) source(context.Context) ([]string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asks++
	return l.answer, nil
}

// becomes sets the answer, and returns how often the Source was asked so far.
func (l *list) becomes(answer ...string) (asks int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answer = answer
	return l.asks
}

// has takes resources, which must be these, and gives them back.
func (d *desk) has(resources ...string) {
	d.w.T.Helper()
	var all []*allocator.Allocation[string]
	for _, resource := range resources {
		all = append(all, d.takes(resource, nil))
	}
	d.w.release(all...)
}

// events are those of one kind that a node has told so far.
func (n *proc) events(kind observe.Kind) []observe.Event {
	synctest.Wait()
	return slices.DeleteFunc(n.Events(), func(e observe.Event) bool { return e.Kind != kind })
}

func TestAPoolIsFilledByOneNodeAndOthersCloseWhatHasLeft(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		l := &list{answer: []string{"a", "b", "c", "a"}}
		filled := allocator.Config[string]{Source: l.source, RefreshEvery: time.Minute, Expiry: time.Hour, MaxSharers: 3}
		first := w.desk(filled, nil)
		synctest.Wait()
		second, third := w.desk(filled, nil), w.desk(allocator.Config[string]{RefreshEvery: time.Minute}, nil)
		w.Advance(time.Second)
		told := first.events(observe.Refreshed)
		require.Len(t, told, 1)
		require.Equal(t, 3, told[0].Count)
		require.Equal(t, 3, w.status("a").MaxSharers)
		require.Equal(t, time.Hour, w.status("a").Expiry.Round(time.Minute))
		second.has("a", "b", "c")
		third.has("a", "b")
		held := third.takes("c", nil)

		require.Equal(t, 1, l.becomes("b"))
		w.Advance(2*time.Minute + 10*time.Second)
		asks := l.becomes("b")
		require.GreaterOrEqual(t, asks, 2)
		require.LessOrEqual(t, asks, 3, "one of them in a minute")
		w.Advance(2 * time.Minute)
		second.requireClosed("a") // c has not left yet: the third one holds it
		third.requireClosed("a")
		w.release(held)
		third.requireClosed("a", "c")
	})
}

func TestRefreshOfAPoolReplacesNow(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		l := &list{answer: []string{"a"}}
		n := w.nodeOf(allocator.Config[string]{Source: l.source, AllowEmpty: true})
		synctest.Wait()
		for _, c := range []struct {
			answer []string
			change allocator.Change
		}{
			{[]string{"a", "b", "\xff|", "b"}, allocator.Change{Added: 2, Kept: 1}},
			{[]string{"b"}, allocator.Change{Kept: 1, Removed: 2}},
			{nil, allocator.Change{Removed: 1}},
		} {
			l.becomes(c.answer...)
			change := must(n.Refresh(t.Context()))(t)
			require.Equal(t, c.change, change)
			require.Equal(t, c.change.Added+c.change.Kept, w.inspect().Resources)
		}
	})
}
