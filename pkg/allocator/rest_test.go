package allocator_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/observe"
)

// requireRests fails unless a resource rests until that moment, for that reason, and
// is free then.
func (w *world) requireRests(resource string, until time.Duration, reason string) {
	w.T.Helper()
	info := w.status(resource)
	require.Equal(w.T, allocator.Resting, info.State)
	require.Equal(w.T, until, w.Now()+info.Left)
	require.Equal(w.T, reason, info.Reason)
	require.NotContains(w.T, w.list(), resource)
	w.inspect()
	w.Until(until - ms)
	require.Equal(w.T, allocator.Resting, w.status(resource).State)
	require.ErrorIs(w.T, second(w.pool.TryAllocate(ctx, nil)), berth.ErrBusy)
	w.Until(until)
	require.Equal(w.T, allocator.Free, w.status(resource).State)
	require.Empty(w.T, w.status(resource).Reason)
	require.Equal(w.T, resource, must(w.pool.TryAllocate(ctx, nil))(w.T).Resource())
	w.inspect()
}

func TestAResourceRestsAfterEachHoldHoweverItEnded(t *testing.T) {
	const cooldown = 3 * time.Second
	type hold = *allocator.Allocation[string]
	type row struct {
		at  time.Duration
		end func(w *world, n *proc, held hold)
	}
	inEach(t, map[string]row{
		"released":            {time.Second, func(w *world, _ *proc, held hold) { w.release(held) }},
		"the node was closed": {time.Second, func(_ *world, n *proc, _ hold) { n.Shut() }},
		"its lease ran out":   {lease, func(w *world, _ *proc, _ hold) { w.Until(lease + time.Second) }},
	}, func(t *testing.T, w *world, c row) {
		n := w.nodeOf(allocator.Config[string]{Cooldown: cooldown}, "a")
		held := n.takes("a", &allocator.AllocateOptions{NoRenew: true})
		w.Until(time.Second)
		c.end(w, n, held)
		must(w.ops().Sweep(ctx, proxies))(t) // what has expired is counted from its deadline all the same
		w.requireRests("a", c.at+cooldown, "")
	})
}

func TestAnAllocationsRestIsForItsResourceIfItIsLongerThanTheCooldown(t *testing.T) {
	const cooldown = 2 * time.Second
	long := strings.Repeat("ü", 300)
	asks := func(d time.Duration, reason string) func(h *allocator.Allocation[string]) {
		return func(h *allocator.Allocation[string]) { _ = h.Rest(d, reason) }
	}
	type row struct {
		ask    func(held *allocator.Allocation[string])
		rest   time.Duration
		reason string
		swap   bool
	}
	inEach(t, map[string]row{
		"longer":     {asks(5*time.Second, "429"), 5 * time.Second, "429", false},
		"shorter":    {asks(time.Second, "429"), cooldown, "", false},
		"rounded up": {asks(5*time.Second+1, ""), 5*time.Second + ms, "", false},
		"taken back": {func(h *allocator.Allocation[string]) {
			_ = h.Rest(5*time.Second, "429")
			_ = h.Rest(0, "")
		}, cooldown, "", false},
		"a long reason": {asks(5*time.Second, long), 5 * time.Second, long[:512], false},
		"negative": {func(h *allocator.Allocation[string]) {
			_ = h.Rest(5*time.Second, "429")
			require.ErrorIs(t, h.Rest(-5*time.Second, ""), berth.ErrInvalidConfig)
		}, 5 * time.Second, "429", false},
		"longer, and swapped": {asks(5*time.Second, "429"), 5 * time.Second, "429", true},
	}, func(t *testing.T, w *world, c row) {
		n := w.nodeOf(allocator.Config[string]{Cooldown: cooldown}, "a")
		held := n.takes("a", nil)
		w.Until(time.Second)
		n.Fresh()
		c.ask(held)
		require.Empty(t, n.Scripts(), "it sends nothing")
		if c.swap {
			w.add("b")
			require.NoError(t, held.Swap(ctx))
			require.Equal(t, "b", held.Resource())
		} else {
			w.release(held)
		}
		w.requireRests("a", time.Second+c.rest, c.reason)
		if c.swap {
			w.release(held)
			require.Equal(t, cooldown, w.status("b").Left, "what was asked for was for the old one")
		}
	})
}

var exactly = &allocator.RestOptions{Exactly: true}

// Of a resource that is free it begins at once, of one that is held when that comes back.
func TestTheLongerOfTwoRestsOfAnOperatorCountsOrTheExactOne(t *testing.T) {
	type row struct {
		before time.Duration
		opts   *allocator.RestOptions
		lasts  time.Duration
		reason string
	}
	inEach(t, map[string]row{
		"shorter": {berth.Forever, nil, berth.Forever, "before"},
		"exactly": {berth.Forever, exactly, 3 * time.Second, "mine"},
		"longer":  {time.Second, nil, 3 * time.Second, "mine"},
	}, func(t *testing.T, w *world, c row) {
		n := w.node("free", "leased")
		w.release(n.takes("free", nil))
		held := n.takes("leased", nil)
		for _, resource := range []string{"free", "leased"} {
			require.NoError(t, n.Rest(ctx, resource, c.before, "before", nil))
			require.NoError(t, n.Rest(ctx, resource, 3*time.Second, "mine", c.opts))
		}
		require.Equal(t, allocator.Leased, w.status("leased").State)
		require.Equal(t, c.reason, w.status("leased").Reason, "why it will")
		require.NoError(t, held.Err(), "its holder keeps it")
		w.release(held)
		for _, resource := range []string{"free", "leased"} {
			require.Equal(t, c.lasts, w.status(resource).Left, resource)
			require.Equal(t, c.reason, w.status(resource).Reason, resource)
		}
		for _, told := range n.Told(observe.Rested) {
			require.False(t, told.Left == 3*time.Second && c.reason == "before", "nobody is told of what does not count")
		}
		require.NoError(t, n.Rest(ctx, "free", 0, "", nil))
		require.Equal(t, allocator.ResourceInfo{Resource: "free", MaxSharers: 1, State: allocator.Free}, w.status("free"))
		w.inspect()
	})
}

func TestATryIsToldThatAllRest(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node("a", "b")
		held := n.takes("a", nil)
		require.NoError(t, n.Rest(t.Context(), "b", time.Minute, "", nil))
		refused := func(reason berth.Reason) error {
			t.Helper()
			_, err := n.TryAllocate(t.Context(), nil)
			require.ErrorIs(t, err, berth.ErrBusy)
			refused, _ := errors.AsType[*berth.AcquireError](err)
			require.Equal(t, reason, refused.Reason)
			return err
		}
		_ = refused(berth.ReasonFull) // one is held
		_ = held.Rest(time.Minute, "")
		w.release(held)
		require.EqualError(t, refused(berth.ReasonResting), `berth: "proxies" not acquired: resting (capacity 2, held 0, waiting 0)`)
	})
}
