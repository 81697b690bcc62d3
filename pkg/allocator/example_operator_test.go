package allocator_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
)

// See what a pool has, and who has it.
func ExamplePool_Resources() {
	pools, done := open(allocator.Config{Label: "host-1/crawler/4711"})
	defer done()
	proxies := keys(pools, "proxies", allocator.PoolConfig[string]{}, "a", "b", "c")

	ctx := context.Background()
	allocate(proxies, &allocator.AllocateOptions{Meta: map[string]string{"job": "42"}})
	if err := proxies.Rest(ctx, "b", time.Hour, "blocked"); err != nil {
		panic(err)
	}
	var lines []string
	for info, err := range proxies.Resources(ctx) { // in no order
		if err != nil {
			panic(err)
		}
		line := fmt.Sprint(info.Resource, " is ", info.State)
		for _, holder := range info.Holders {
			line += fmt.Sprint(" by ", holder.Label, " for job ", holder.Meta["job"])
		}
		if info.State == allocator.Resting {
			line += fmt.Sprint(" because ", info.Reason)
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	for _, line := range lines {
		fmt.Println(line)
	}

	info, err := proxies.Status(ctx, "d")
	fmt.Println(info.Resource, "is", info.State, err)
	// Output:
	// a is leased by host-1/crawler/4711 for job 42
	// b is resting because blocked
	// c is free
	// d is absent <nil>
}

// Count a pool, and check that what is kept of it fits together.
func ExamplePool_Inspect() {
	pools, done := open(allocator.Config{})
	defer done()
	proxies := keys(pools, "proxies", allocator.PoolConfig[string]{}, "a", "b", "c")
	allocate(proxies, &allocator.AllocateOptions{Bind: "customer-7"})

	found, err := proxies.Inspect(context.Background())
	if err != nil {
		panic(err)
	}
	s := found.Stats
	fmt.Println(s.Resources, "resources:", s.Free, "free,", s.Leased, "leased,", s.Resting, "resting")
	fmt.Println(found.Bindings, "binding,", len(found.Problems), "problems")
	// Output:
	// 3 resources: 2 free, 1 leased, 0 resting
	// 1 binding, 0 problems
}

// End somebody's hold by its id alone.
func ExampleClient_ReleaseByID() {
	pools, done := open(allocator.Config{})
	defer done()
	proxies := keys(pools, "proxies", allocator.PoolConfig[string]{}, "a")

	ctx := context.Background()
	proxy := allocate(proxies, nil)
	for holder, err := range proxies.Holders(ctx) {
		if err != nil {
			panic(err)
		}
		fmt.Println(holder.Resource, "is taken from its holder")
		if err := pools.ReleaseByID(ctx, "proxies", holder.ID); err != nil {
			panic(err)
		}
	}

	// The holder's process is told at once if it has ever had to wait; else with
	// its next heartbeat, or its next call.
	fmt.Println(errors.Is(proxy.Release(ctx), berth.ErrReleased))
	// Output:
	// a is taken from its holder
	// true
}
