package semaphore_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/semaphore"
)

// Where two programs name different capacities, the stored one counts by default.
func ExampleCapacityPolicy() {
	ctx, redis, end := newRedis()
	defer end()
	reader, err := inspect.New(redis, inspect.Config{})
	check(err)

	// deploy stands for a process whose program names a capacity.
	deploy := func(policy semaphore.CapacityPolicy, capacity int) {
		n, err := node.New(redis, node.Config{})
		check(err)
		defer func() { _ = n.Close(ctx) }()
		gpu := semaphore.New(n, "gpu", capacity, &semaphore.Config{CapacityPolicy: policy})
		_, err = gpu.TryAcquire(ctx, nil)
		var refused *berth.AcquireError
		if errors.As(err, &refused) {
			fmt.Printf("%s, asks for %d: %s\n", policy, capacity, refused.Reason)
			return
		}
		seen, err := reader.Name(ctx, keyspace.Sem, gpu.Name())
		fmt.Printf("%s, asks for %d: granted, capacity %d, %v\n", policy, capacity, seen.Capacity, err)
	}
	deploy(semaphore.CapacityStored, 2)
	deploy(semaphore.CapacityStored, 8)
	deploy(semaphore.CapacityStrict, 8)
	deploy(semaphore.CapacityOverride, 8)
	// Output:
	// stored, asks for 2: granted, capacity 2, <nil>
	// stored, asks for 8: granted, capacity 2, <nil>
	// strict, asks for 8: capacity differs
	// override, asks for 8: granted, capacity 8, <nil>
}

// An observer hears of everything: count it, log it, trace it.
func ExampleNew_observer() {
	ctx, n, end := newNode(node.Config{
		// It stands for metrics: everything that happens is one event.
		// docs/generated/events.md lists the kinds.
		Observer: observe.Func(func(e observe.Event) { fmt.Println(e.Kind, e.Name, e.Attrs["request"]) }),
		// Heartbeats and repeated calls are events too: none comes before the example is over.
		Lease: time.Minute, CallTimeout: time.Minute,
	})
	defer end()
	gpu := semaphore.New(n, "gpu", 1, nil)
	opts := &semaphore.AcquireOptions{Attrs: map[string]any{"request": 4711}}
	err := gpu.Do(ctx, opts, func(ctx context.Context) error {
		return gpu.TryDo(ctx, opts, func(context.Context) error { return nil })
	})
	fmt.Println(err)
	// Output:
	// granted gpu 4711
	// refused gpu 4711
	// released gpu 4711
	// berth: "gpu" not acquired: full (capacity 1, held 1, waiting 0)
}

// Claims are granted in the order in which they came. A higher priority stands
// ahead of all lower ones.
func ExampleSemaphore_Acquire_line() {
	queued := make(chan struct{})
	ctx, redis, end := newRedis()
	defer end()
	n, err := node.New(redis, node.Config{Observer: observe.Func(func(e observe.Event) {
		if e.Kind == observe.Queued {
			queued <- struct{}{}
		}
	})})
	check(err)
	defer func() { _ = n.Close(ctx) }()
	ferry := semaphore.New(n, "ferry", 1, nil)
	permit, err := ferry.Acquire(ctx, nil)
	check(err)

	// cross waits in line for the ferry, and crosses alone.
	cross := func(who string, priority int) {
		check(ferry.Do(berth.WithOwner(ctx, who), &semaphore.AcquireOptions{Priority: priority},
			func(context.Context) error {
				fmt.Println(who)
				return nil
			}))
	}
	var crossing sync.WaitGroup
	for _, claim := range []struct {
		who      string
		priority int
	}{{"car", 0}, {"lorry", 0}, {"ambulance", 100}} {
		crossing.Go(func() { cross(claim.who, claim.priority) })
		<-queued // so that they come one after the other
	}
	reader, err := inspect.New(redis, inspect.Config{})
	check(err)
	line, err := reader.Waiters(ctx, keyspace.Sem, ferry.Name(), "", 0)
	check(err)
	for _, waiter := range line.Items {
		fmt.Println(waiter.Owner, "has", waiter.Ahead, "ahead")
	}
	check(permit.Release(ctx))
	crossing.Wait()
	// Output:
	// ambulance has 0 ahead
	// car has 1 ahead
	// lorry has 2 ahead
	// ambulance
	// car
	// lorry
}

// Operators change the semaphores of a namespace, whoever holds them: that of the node has the calls of all kinds. An
// inspect.Reader shows them.
func ExampleOperator() {
	ctx, redis, end := newRedis()
	defer end()
	n, err := node.New(redis, node.Config{})
	check(err)
	defer func() { _ = n.Close(ctx) }()
	reader, err := inspect.New(redis, inspect.Config{})
	check(err)
	// dashboard prints the semaphores in use, the fullest first, and who holds them.
	dashboard := func() {
		var all []inspect.Name
		for from, more := "", true; more; { // a page of a slow server may be empty, and others follow
			page, err := reader.Names(ctx, inspect.NameFilter{Kinds: []keyspace.Kind{keyspace.Sem}}, from, 0)
			check(err)
			all = append(all, page.Items...)
			from, more = page.Next, page.Next != ""
		}
		slices.SortFunc(all, func(a, b inspect.Name) int { return cmp.Compare(b.Share(), a.Share()) })
		for _, n := range all {
			fmt.Printf("%s: %d of %d held\n", n.Name, n.Held, n.Capacity)
			holders, err := reader.Holders(ctx, n.Kind, n.Name, "", 0)
			check(err)
			for _, h := range holders.Items {
				fmt.Printf("  %s holds %d for job %s\n", h.Owner, h.Weight, h.Meta["job"])
			}
		}
	}

	var permits []*semaphore.Permit
	for _, claim := range []struct {
		name, owner, job string
		weight           int
	}{{"cpu", "ann", "41", 1}, {"gpu", "bob", "42", 3}} {
		permit, err := semaphore.New(n, claim.name, 4, nil).Acquire(berth.WithOwner(ctx, claim.owner), &semaphore.AcquireOptions{
			Weight: claim.weight, Meta: map[string]string{"job": claim.job},
		})
		check(err)
		permits = append(permits, permit)
	}
	dashboard()
	fmt.Println(semaphore.NewOperator(n).Resize(ctx, "cpu", 8, nil))   // nobody loses a permit
	fmt.Println(n.Operator().Release(ctx, berth.Target{Owner: "bob"})) // wherever bob holds or waits
	dashboard()

	// Bob's process hears of it, at the latest by its next call.
	fmt.Println(errors.Is(permits[1].Release(ctx), berth.ErrReleased))
	// Output:
	// gpu: 3 of 4 held
	//   bob holds 3 for job 42
	// cpu: 1 of 4 held
	//   ann holds 1 for job 41
	// <nil>
	// 1 <nil>
	// cpu: 1 of 8 held
	//   ann holds 1 for job 41
	// true
}
