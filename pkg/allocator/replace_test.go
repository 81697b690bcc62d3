package allocator_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
)

func TestReplaceKeepsWhatStays(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		n := w.node()
		w.add("a", "b", "c", "d", "e")
		goes, stays := n.takes("a", nil), n.takes("b", nil)
		require.NoError(t, n.Rest(ctx, "c", time.Minute, "mine", nil))
		change, err := n.Replace(ctx, []string{"f", "e", "c", "b", "f"}, &allocator.AddOptions{Expiry: time.Hour})
		changed(t, change, err)(1, 3, 2)
		require.Equal(t, []string{"e", "f"}, w.list())
		require.Equal(t, "mine", w.status("c").Reason)
		require.Equal(t, time.Hour, w.status("b").Expiry)
		require.True(t, w.status("a").Leaving)
		require.NoError(t, goes.Err())
		w.release(goes)
		w.release(stays)
		require.Equal(t, []string{"e", "f", "b"}, w.list())
		w.requireIdle()
	})
}

func TestReplaceOfManyGoesInSteps(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		w.add(many("x", 210)...)
		told := 0
		change, err := n.Replace(context.Background(), append(many("y", 210), "x7"), &allocator.AddOptions{Progress: func(done, total int) {
			told = done
			require.Equal(t, 211, total)
		}})
		changed(t, change, err)(210, 1, 209)
		require.Equal(t, 211, told)
		require.Equal(t, 211, w.inspect().Resources)
		n.takes("x7", nil)
		n.takes("y0", nil)
	})
}

// replacing is a Replace that stands still before its step number step.
type replacing struct {
	*proc
	reached, proceed chan struct{}
	done             chan struct{}
	change           allocator.Change
	err              error
}

func (n *proc) replaceUpTo(step int, resources []string) *replacing {
	r := &replacing{proc: n, reached: make(chan struct{}), proceed: make(chan struct{}), done: make(chan struct{})}
	stood := false // after a flush it begins again
	go func() {
		defer close(r.done)
		r.change, r.err = n.Replace(context.Background(), resources, &allocator.AddOptions{Progress: func(done, _ int) {
			if done == step && !stood {
				stood = true
				close(r.reached)
				<-r.proceed
			}
		}})
	}()
	<-r.reached
	return r
}

// goOn lets it end.
func (r *replacing) goOn() {
	close(r.proceed)
	<-r.done
	synctest.Wait()
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
		ctx := context.Background()
		for _, step := range []int{200, 401} {
			old, n := w.node(), w.node()
			r := old.replaceUpTo(step, many("old", 401))
			_, err := n.Replace(ctx, []string{"a", "b"}, nil)
			require.NoError(t, err)
			r.goOn()
			require.ErrorIs(t, r.err, berth.ErrStale)
			require.Equal(t, step, r.change.Added)
			require.Equal(t, map[string]allocator.State{"a": allocator.Free, "b": allocator.Free}, w.states())
			w.inspect()
			w.Advance(time.Second)
		}
	})
}

// What is added while a Replace is under way is newer than what that knew.
func TestWhatIsAddedDuringAReplaceStays(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		w.add("gone", "kept")
		r := n.replaceUpTo(200, many("x", 300))
		w.add("new", "kept")
		r.goOn()
		changed(t, r.change, r.err)(300, 0, 1)
		require.Equal(t, 302, w.inspect().Resources)
		require.Equal(t, allocator.Free, w.status("new").State)
		require.Equal(t, allocator.Free, w.status("kept").State)
		require.Equal(t, allocator.Absent, w.status("gone").State)
	})
}

// A Replace that is cut off has removed nothing yet.
func TestAReplaceThatIsInterruptedLosesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		w.add("a", "b")
		r := n.replaceUpTo(200, many("x", 300))
		n.Cut()
		r.goOn()
		require.Error(t, r.err)
		require.Equal(t, allocator.Change{Added: 200}, r.change)
		require.Equal(t, 202, w.inspect().Resources)
		n.Mend()
		change, err := n.Replace(context.Background(), many("x", 300), nil)
		changed(t, change, err)(100, 200, 2)
	})
}

func TestAReplaceThroughAFlushHasAll(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for _, step := range []int{200, 401} {
			r := w.node().replaceUpTo(step, many("x", 401))
			w.Do("FLUSHALL")
			r.goOn()
			require.NoError(t, r.err)
			require.Equal(t, 401, w.inspect().Resources)
			require.Equal(t, 401, r.change.Added)
			w.Do("FLUSHALL")
			w.Advance(time.Second)
		}
	})
}
