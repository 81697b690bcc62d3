package allocator_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/berth-go/berth/pkg/allocator"
)

// See what a pool has, and who has it.
func ExampleOperator_Resources() {
	pools, done := open(allocator.Config{Label: "host-1/crawler/4711"})
	defer done()
	proxies := keys(pools, "proxies", allocator.PoolConfig[string]{}, "a", "b", "c")

	ctx := context.Background()
	allocate(proxies, &allocator.AllocateOptions{Meta: map[string]string{"job": "42"}})
	if err := proxies.Rest(ctx, "b", time.Hour, "blocked"); err != nil {
		panic(err)
	}
	var lines []string
	for info, err := range pools.Operator().Resources(ctx, "proxies") { // in no order
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

	info, err := pools.Operator().Resource(ctx, "proxies", "d")
	fmt.Println(info.Resource, "is", info.State, err)
	// Output:
	// a is leased by host-1/crawler/4711 for job 42
	// b is resting because blocked
	// c is free
	// d is absent <nil>
}

// Count a pool, and check that what is kept of it fits together.
func ExampleOperator_Inspect() {
	pools, done := open(allocator.Config{})
	defer done()
	proxies := keys(pools, "proxies", allocator.PoolConfig[string]{}, "a", "b", "c")
	allocate(proxies, &allocator.AllocateOptions{Bind: "customer-7"})

	found, err := pools.Operator().Inspect(context.Background(), "proxies")
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
