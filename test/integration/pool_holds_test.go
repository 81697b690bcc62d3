package integration

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/node"
)

// strangeKeys are keys of resources that look like something else: to a text that is
// split, to a script, to the free list.
func strangeKeys() []string {
	keys := []string{
		"|b", "a|", "||", "|", "#ALLOCATED", " ", "a b", " lead", "trail ", "\n", "a\r\nb", "\t", "ö", "日本語", "\u0085", "\u2028",
		"\xff", "a\xffb", "\xff\xfe\x00", "\x00", "a\x00b", "!gone", "v", "n", "p", "i", "b", "c:x", "r:x", "h:", "e:x", "x:", "u:",
		"0", "-1", "1 0 0 0 0 0 0 ", "nil", "false", "{x}", "}", "%d", "*", "[a-z]", "state", "pool",
		strings.Repeat("k", 1024), strings.Repeat("\xff", 1024), strings.Repeat(" ", 1024),
	}
	for c := range 256 {
		if key := string([]byte{byte(c)}); !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

func TestAnyBytesAreAResource(t *testing.T) {
	w := sharedPools(t)
	keys, ctx := strangeKeys(), w.Within(10*patience)
	p, there := w.pool(node.Config{}), w.pool(node.Config{})
	for _, bad := range []string{"", strings.Repeat("k", 1025)} {
		_, err := p.Add(ctx, []string{"good", bad}, nil)
		require.ErrorIs(t, err, berth.ErrInvalidConfig)
	}
	require.Empty(t, w.keys(), "what was refused has left something")
	change, err := p.Add(ctx, keys, nil)
	require.NoError(t, err)
	require.Equal(t, allocator.Change{Added: len(keys)}, change)

	// They come in the order in which they were added, and back in the one in which
	// they were given back.
	var held []*allocation
	for _, key := range keys {
		a := w.allocate(p, nil)
		require.Equal(t, key, a.Resource())
		require.Equal(t, key, a.Value())
		held = append(held, a)
	}
	w.inspected(p)
	slices.Reverse(held)
	w.giveBack(held...)
	slices.Reverse(keys)
	for _, key := range keys {
		a := w.allocate(there, &allocator.AllocateOptions{Bind: key[:min(len(key), 512)]})
		require.Equal(t, key, a.Resource())
		w.giveBack(a)
	}

	for i, key := range keys {
		require.NoError(t, p.Bind(ctx, "customer", key, nil))
		bound, err := there.Binding(ctx, "customer")
		require.NoError(t, err)
		require.Equal(t, key, bound.Resource)
		a := w.allocate(p, &allocator.AllocateOptions{Bind: "customer"}) // from the middle of the list
		require.Equal(t, key, a.Resource())
		info, err := there.ops.Resource(ctx, proxies, key)
		require.NoError(t, err)
		require.Equal(t, allocator.Leased, info.State)
		require.Equal(t, key, info.Resource)
		other := w.allocate(p, nil)
		w.giveBack(other)
		if i%8 == 0 {
			require.NoError(t, a.Swap(ctx))
			require.NotEqual(t, key, a.Resource())
		}
		w.giveBack(a)
		require.NoError(t, there.Rest(ctx, key, berth.Forever, key[:min(len(key), 512)], nil))
		info, err = p.ops.Resource(ctx, proxies, key)
		require.NoError(t, err)
		require.Equal(t, allocator.Resting, info.State)
		require.Equal(t, key[:min(len(key), 512)], info.Reason)
		require.NoError(t, there.Rest(ctx, key, 0, "", nil))
	}
	seen := map[string]bool{}
	for info, err := range there.ops.Resources(ctx, proxies) {
		require.NoError(t, err)
		require.Equal(t, allocator.Free, info.State)
		seen[info.Resource] = true
	}
	require.Len(t, seen, len(keys))
	for _, key := range keys {
		require.True(t, seen[key], "%q is not listed", key)
	}
	w.allFree(p, len(keys))

	_, err = p.Replace(ctx, keys[:7], nil)
	require.NoError(t, err)
	w.allFree(p, 7)
	for _, key := range keys[:7] {
		change, err := there.Remove(ctx, []string{key})
		require.NoError(t, err)
		require.Equal(t, 1, change.Removed)
	}
	w.allFree(p, 0)
	t.Logf("%d keys, each allocated, bound, rested, listed and removed", len(keys))
}

// lateThings are what a holder may call when its lease has long ended.
var lateThings = []string{"release", "renew", "release"}

// A holder that was stopped for longer than its lease wakes when another one has the
// resource, or it is free, or it has left the pool.
func TestALateReleaseChangesNothing(t *testing.T) {
	t.Parallel()
	const lease = safe
	for what, meanwhile := range map[string]func(w *world, p *pool){
		"somebody else holds it": func(w *world, p *pool) { w.allocate(p, nil) },
		"nobody has swept it":    func(*world, *pool) {},
		"it has left": func(w *world, p *pool) {
			_, err := p.Remove(w.Within(patience), []string{"r0"})
			require.NoError(w, err)
			w.swept(proxies)
		},
	} {
		t.Run(what, func(t *testing.T) {
			w := sharedPools(t)
			p := w.pool(node.Config{Lease: time.Hour})
			w.add(p, "r0")
			holder := w.spawn(lease)
			held := holder.does(order{Do: "acquire"})
			require.Equal(t, "r0", held.Got)
			holder.stop()
			_, deadline := w.holder(proxies)
			w.Await("its lease has ended", func() bool { return w.now() > deadline })
			meanwhile(w, p)
			before := w.dumpsOf(proxies)
			holder.signal(syscall.SIGCONT)
			for _, do := range lateThings {
				late := holder.ask(order{Do: do, Name: proxies})
				require.Contains(t, late.Is, "not held", "%s: %q", do, late.Err)
			}
			if what == "nobody has swept it" {
				// Then the late release is what gives it back, in place of a sweep.
				w.allFree(p, 1)
				return
			}
			require.Equal(t, before, w.dumpsOf(proxies), "it has changed something")
			w.inspected(p)
			t.Logf("%d late calls of a holder stopped for more than %v: all match ErrNotHeld, all %d keys are the same bytes", len(lateThings), lease, len(before))
		})
	}
}

// What was leased when it was removed, by another process than the one that adds it
// again, is as if never removed.
func TestARemovedResourceThatIsAddedAgainStaysWithItsHolder(t *testing.T) {
	w := sharedPools(t)
	holder, remover, adder := w.spawn(time.Hour), w.spawn(time.Hour), w.spawn(time.Hour) // no heartbeat moves a deadline
	p := w.pool(node.Config{Lease: time.Hour})
	w.add(p, "r0")
	held := holder.does(order{Do: "acquire"})
	before, ctx := w.look(proxies), w.Within(patience)

	remover.does(order{Do: "remove", Names: []string{"r0"}})
	info, err := p.ops.Resource(ctx, proxies, "r0")
	require.NoError(t, err)
	require.True(t, info.Leaving)
	require.Equal(t, held.Claim, info.Holders[0].ID)
	adder.does(order{Do: "add", Names: []string{"r0"}})
	for _, child := range []*child{remover, adder} {
		_, err := p.TryAllocate(ctx, nil)
		require.ErrorIs(t, err, berth.ErrBusy, "it was handed out twice")
		child.kill()
	}
	info, err = p.ops.Resource(ctx, proxies, "r0")
	require.NoError(t, err)
	require.Equal(t, allocator.Leased, info.State)
	require.False(t, info.Leaving)
	require.Len(t, info.Holders, 1)
	require.Equal(t, held.Claim, info.Holders[0].ID)
	require.Equal(t, held.Fence, info.Holders[0].Fence)
	require.Equal(t, before.holds, w.whole(proxies).holds, "its deadline has moved")
	require.Empty(t, holder.ask(order{Do: "renew", Name: proxies}).Err)
	w.inspected(p)

	q := w.allocateQueue(p, nil, 1)
	require.Empty(t, holder.ask(order{Do: "release", Name: proxies}).Err)
	a := q.Wait(w)
	require.Equal(t, "r0", a.Resource())
	require.Greater(t, a.Fence(), held.Fence)

	// Removed for good, it leaves when it comes back.
	_, err = p.Remove(ctx, []string{"r0"})
	require.NoError(t, err)
	require.NoError(t, a.Err())
	w.giveBack(a)
	w.allFree(p, 0)
	t.Logf("removed by one process and added by another, it stayed with the holder of a third: fence %d, then %d", held.Fence, a.Fence())
}
