package allocator_test

import (
	"context"
	"fmt"
	"time"

	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/node"
)

// allot allocates with the options of a call, and prints what was meant.
func allot(ctx context.Context, proxies *allocator.Pool[string], call *allocator.AllocateOptions) {
	proxy, err := proxies.Allocate(ctx, call)
	if err != nil {
		panic(err)
	}
	fmt.Println("lease", proxy.Lease())
	if err := proxy.Release(ctx); err != nil {
		panic(err)
	}
}

// A field that a call leaves zero comes from the pool's defaults, then from the built-in ones.
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
	n, err := node.New(redis, node.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = n.Close(ctx) }()
	proxies := allocator.New(n, "proxies", allocator.Config[string]{
		Defaults: allocator.AllocateOptions{Lease: time.Minute, MaxWait: 10 * time.Second, BindFor: 24 * time.Hour},
	})
	if _, err := proxies.Add(ctx, []string{"a", "b"}, nil); err != nil {
		panic(err)
	}

	allot(ctx, proxies, nil)
	allot(ctx, proxies, &allocator.AllocateOptions{Bind: "customer-7", Lease: 30 * time.Second})
	allot(ctx, proxies, &allocator.AllocateOptions{NoDefaults: true})
	binding, err := proxies.Binding(ctx, "customer-7")
	fmt.Println("bound for a day:", binding.Left > 23*time.Hour, err)
	// Output:
	// lease 1m0s
	// lease 30s
	// lease 10s
	// bound for a day: true <nil>
}
