package allocator_test

import (
	"context"
	"fmt"
	"time"

	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/embedded"
)

// Say once how allocations go: for all pools of a client, then for one pool, then for
// one call.
func Example_defaults() {
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
	pools, err := allocator.New(redis, allocator.Config{
		Defaults: allocator.AllocateOptions{Lease: time.Minute, MaxWait: 10 * time.Second},
	})
	if err != nil {
		panic(err)
	}
	defer pools.Close(ctx)
	proxies, err := allocator.NewPool(pools, "proxies", allocator.PoolConfig[string]{
		Defaults: allocator.AllocateOptions{MaxWait: time.Minute, BindFor: 24 * time.Hour},
	})
	if err != nil {
		panic(err)
	}
	if _, err := proxies.Add(ctx, []string{"a", "b"}, nil); err != nil {
		panic(err)
	}

	bound, err := proxies.Allocate(ctx, &allocator.AllocateOptions{Bind: "customer-7"})
	if err != nil {
		panic(err)
	}
	binding, err := proxies.Binding(ctx, "customer-7")
	fmt.Println("a lease of", bound.Lease(), "and bound for a day:", binding.Left > 23*time.Hour, err)

	plain, err := proxies.Allocate(ctx, &allocator.AllocateOptions{NoDefaults: true})
	if err != nil {
		panic(err)
	}
	fmt.Println("a lease of", plain.Lease())
	// Output:
	// a lease of 1m0s and bound for a day: true <nil>
	// a lease of 10s
}
