package allocator_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/allocator"
)

func TestReplaceKeepsWhatStays(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node("a", "b", "c", "d", "e")
		goes, stays := n.takes("a", nil), n.takes("b", nil)
		require.NoError(t, n.Rest(ctx, "c", time.Minute, "mine", nil))
		change := must(n.Replace(ctx, []string{"f", "e", "c", "b", "f"}, &allocator.AddOptions{Expiry: time.Hour}))(t)
		require.Equal(t, allocator.Change{Added: 1, Kept: 3, Removed: 2}, change)
		require.Equal(t, []string{"e", "f"}, w.list())
		require.Equal(t, "mine", w.status("c").Reason)
		require.Equal(t, time.Hour, w.status("b").Expiry)
		require.True(t, w.status("a").Leaving)
		require.NoError(t, goes.Err())
		w.release(goes, stays)
		require.Equal(t, []string{"e", "f", "b"}, w.list())
		w.requireIdle()
	})
}

func TestReplaceOfManyGoesInSteps(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node(many("x", 210)...)
		told := 0
		progress := func(done, total int) {
			told = done
			require.Equal(t, 211, total)
		}
		change := must(n.Replace(ctx, append(many("y", 210), "x7"), &allocator.AddOptions{Progress: progress}))(t)
		require.Equal(t, allocator.Change{Added: 210, Kept: 1, Removed: 209}, change)
		require.Equal(t, 211, told)
		require.Equal(t, 211, w.inspect().Resources)
		n.takes("x7", nil)
		n.takes("y0", nil)
	})
}

// replaceUpTo begins a Replace, which stands still before its step number step until it goes on.
func (n *proc) replaceUpTo(step int, resources []string) (goOn func() (allocator.Change, error)) {
	reached, proceed := make(chan struct{}), make(chan struct{})
	stood := false // after a flush it begins again
	progress := func(done, _ int) {
		if done == step && !stood {
			stood = true
			close(reached)
			<-proceed
		}
	}
	call := testkit.Begin(ctx, func(ctx context.Context) (allocator.Change, error) {
		return n.Replace(ctx, resources, &allocator.AddOptions{Progress: progress})
	})
	<-reached
	return func() (allocator.Change, error) {
		close(proceed)
		<-call.Done
		synctest.Wait()
		return call.Got, call.Err
	}
}

func many(prefix string, count int) []string {
	var all []string
	for i := range count {
		all = append(all, fmt.Sprint(prefix, i))
	}
	return all
}

func TestTheNewerOfTwoReplacesWins(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for _, step := range []int{200, 401} {
			old, n := w.node(), w.node()
			goOn := old.replaceUpTo(step, many("old", 401))
			must(n.Replace(ctx, []string{"a", "b"}, nil))(t)
			change, err := goOn()
			require.ErrorIs(t, err, berth.ErrOvertaken)
			require.Equal(t, step, change.Added)
			require.Equal(t, map[string]allocator.State{"a": allocator.Free, "b": allocator.Free}, w.states())
			w.inspect()
			w.Advance(time.Second)
		}
	})
}

// A Replace that is cut off has removed nothing yet.
func TestAReplaceThatIsInterruptedLosesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node("a", "b")
		goOn := n.replaceUpTo(200, many("x", 300))
		n.Cut()
		change, err := goOn()
		require.Error(t, err)
		require.Equal(t, allocator.Change{Added: 200}, change)
		require.Equal(t, 202, w.inspect().Resources)
		n.Mend()
		change = must(n.Replace(ctx, many("x", 300), nil))(t)
		require.Equal(t, allocator.Change{Added: 100, Kept: 200, Removed: 2}, change)
	})
}

func TestAReplaceThroughAFlushHasAll(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for _, step := range []int{200, 401} {
			goOn := w.node().replaceUpTo(step, many("x", 401))
			w.Do("FLUSHALL")
			require.Equal(t, 401, must(goOn())(t).Added)
			require.Equal(t, 401, w.inspect().Resources)
			w.Do("FLUSHALL")
			w.Advance(time.Second)
		}
	})
}
