package allocator_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/embedded"
)

// Look at all pools, see who holds what, and end by force what one node holds. An
// operator needs no Pool, only the name.
func ExampleOperator_Release() {
	server, err := embedded.Start()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	redis, err := server.Client()
	if err != nil {
		panic(err)
	}
	defer redis.Close()

	ctx := context.Background()
	pools, err := allocator.New(redis, allocator.Config{Label: "host-1/crawler/4711"})
	if err != nil {
		panic(err)
	}
	defer pools.Close(ctx)
	proxies, err := allocator.NewPool(pools, "proxies", allocator.PoolConfig[string]{})
	if err != nil {
		panic(err)
	}
	if _, err := proxies.Add(ctx, []string{"a", "b"}, nil); err != nil {
		panic(err)
	}
	proxy, err := proxies.Allocate(ctx, nil)
	if err != nil {
		panic(err)
	}

	ops := pools.Operator()
	for stats, err := range ops.All(ctx) {
		fmt.Println(stats.Name, "has", stats.Resources, "resources,", stats.Leased, "leased", err)
	}
	for holder, err := range ops.Holders(ctx, "proxies") {
		fmt.Println(holder.Resource, "is held by", holder.Label, err)
	}
	ended, err := ops.Release(ctx, berth.Target{Name: "proxies", Node: proxy.Node()})
	fmt.Println(ended, "ended", err)

	// The holder's process is told at once if it has ever had to wait; else with
	// its next heartbeat, or its next call.
	fmt.Println(errors.Is(proxy.Release(ctx), berth.ErrReleased))
	// Output:
	// proxies has 2 resources, 1 leased <nil>
	// a is held by host-1/crawler/4711 <nil>
	// 1 ended <nil>
	// true
}
