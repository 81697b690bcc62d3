package integration

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
)

// inLanesHouse are things that must work for those who wait for one resource where nothing may grow.
// Besides r0 there is r1. Each prepares while there is room, and returns what is to happen then.
var inLanesHouse = map[string]func(f *poolHouse) func(){
	"a release into a lane": func(f *poolHouse) func() {
		a, q := f.allocate(f.here, only("r0")), f.allocateQueue(f.there, only("r0"), 1)
		return func() {
			f.giveBack(a)
			f.gets(q, "r0")
		}
	},
	"the end of a wait for one resource": func(f *poolHouse) func() {
		require.NoError(f, f.here.Bind(f.Within(patience), "customer", "r0", nil))
		a := f.allocate(f.here, only("r0"))
		q := f.allocateQueue(f.there, &allocator.AllocateOptions{Bind: "customer", BindWait: fullLease}, 1)
		return func() {
			require.False(f, q.Over())
			f.gets(q, "r1")
			f.giveBack(a)
		}
	},
	"a resource with a lane is removed": func(f *poolHouse) func() {
		require.NoError(f, f.here.Bind(f.Within(patience), "customer", "r0", nil))
		a := f.allocate(f.here, only("r0"))
		named := f.allocateQueue(f.there, only("r0"), 1)
		bound := f.allocateQueue(f.there, &allocator.AllocateOptions{Bind: "customer", BindWait: berth.Forever}, 2)
		return func() {
			change, err := f.here.Remove(f.Within(patience), []string{"r0"})
			require.NoError(f, err)
			require.Equal(f, 1, change.Removed)
			f.Signalled("the caller to be let go", named.Done)
			require.ErrorIs(f, named.Err, berth.ErrAbsent)
			f.gets(bound, "r1")
			f.giveBack(a)
		}
	},
	"a rest that ends": func(f *poolHouse) func() {
		require.NoError(f, f.here.Rest(f.Within(patience), "r0", fullLease, "", nil))
		q := f.allocateQueue(f.there, only("r0"), 1)
		return func() {
			require.False(f, q.Over())
			f.gets(q, "r0")
		}
	},
	"somebody leaves a lane": func(f *poolHouse) func() {
		a := f.allocate(f.here, only("r0"))
		ctx, cancel := context.WithCancel(context.Background())
		q := f.allocateLaterWith(ctx, f.there, only("r0"))
		f.Await("it waits", func() bool { return f.look(proxies).waiting() == 1 })
		next := f.allocateQueue(f.there, only("r0"), 2)
		return func() {
			cancel()
			f.Signalled("the caller to be let go", q.Done)
			f.Await("it has left", func() bool { return f.look(proxies).waiting() == 1 })
			f.giveBack(a)
			f.gets(next, "r0")
		}
	},
	"who arrives at a lane is refused": func(f *poolHouse) func() {
		a := f.allocate(f.here, only("r0"))
		return func() {
			_, err := f.there.Allocate(f.Within(patience), only("r0"))
			require.ErrorIs(f, err, berth.ErrNotAcquired)
			require.ErrorContains(f, err, "the server is full")
			require.Zero(f, f.look(proxies).waiting())
			f.giveBack(a)
		}
	},
}

// only is a claim for one resource.
func only(resource string) *allocator.AllocateOptions {
	return &allocator.AllocateOptions{Resource: resource}
}

// gets waits for an allocation of a resource, and gives it back.
func (f *poolHouse) gets(q *allocating, resource string) {
	f.Helper()
	a := q.Wait(f.world)
	require.Equal(f, resource, a.Resource())
	f.giveBack(a)
}

func TestLanesOfAFullServer(t *testing.T) {
	runInPoolHouse(t, inLanesHouse, []string{"r0", "r1"}, func(f *poolHouse) { f.inspected(f.here) })
}
