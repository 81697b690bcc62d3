package allocator_test

import (
	"context"
	"fmt"

	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/embedded"
)

// Proxy is what a process makes of a resource, here of the address of a proxy.
type Proxy struct{ Address string }

// dial stands for what connects to it.
func dial(_ context.Context, address string) (*Proxy, error) { return &Proxy{Address: address}, nil }

// Put proxies into a pool, take one, use it, give it back. Each is dialled once in
// this process. In production the rueidis client is one of a Redis or Valkey; here
// it is one of the embedded server, so that the examples run with nothing but Go.
func Example() {
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
	pools, err := allocator.New(redis, allocator.Config{Namespace: "shop"})
	if err != nil {
		panic(err)
	}
	proxies, err := allocator.NewPool(pools, "proxies", allocator.PoolConfig[*Proxy]{Open: dial})
	if err != nil {
		panic(err)
	}
	if _, err := proxies.Add(ctx, []string{"10.0.0.1:3128", "10.0.0.2:3128"}, nil); err != nil {
		panic(err)
	}

	proxy, err := proxies.Allocate(ctx, nil)
	if err != nil {
		panic(err)
	}
	fmt.Println("through", proxy.Value().Address)
	stats, err := pools.Operator().Stats(ctx, "proxies")
	fmt.Println(stats.Leased, "leased,", stats.Free, "free", err)

	fmt.Println(proxy.Release(ctx))
	fmt.Println(pools.Close(ctx))
	// Output:
	// through 10.0.0.1:3128
	// 1 leased, 1 free <nil>
	// <nil>
	// <nil>
}

// open is how the other examples begin: a client on an embedded server of its own.
// Example has it written out.
func open(cfg allocator.Config) (pools *allocator.Client, done func()) {
	server, err := embedded.Start()
	if err != nil {
		panic(err)
	}
	pools, disconnect := connect(server, cfg)
	return pools, func() {
		disconnect()
		server.Close()
	}
}

// connect makes one more client, as another process would.
func connect(server *embedded.Server, cfg allocator.Config) (pools *allocator.Client, done func()) {
	redis, err := server.Client()
	if err != nil {
		panic(err)
	}
	pools, err = allocator.New(redis, cfg)
	if err != nil {
		panic(err)
	}
	return pools, func() {
		if err := pools.Close(context.Background()); err != nil {
			panic(err)
		}
		redis.Close()
	}
}

// keys makes a pool whose values are the keys of its resources, and fills it.
func keys(pools *allocator.Client, name string, cfg allocator.PoolConfig[string], resources ...string) *allocator.Pool[string] {
	pool, err := allocator.NewPool(pools, name, cfg)
	if err != nil {
		panic(err)
	}
	if _, err := pool.Add(context.Background(), resources, nil); err != nil {
		panic(err)
	}
	return pool
}

// allocate takes a resource.
func allocate(pool *allocator.Pool[string], opts *allocator.AllocateOptions) *allocator.Allocation[string] {
	a, err := pool.Allocate(context.Background(), opts)
	if err != nil {
		panic(err)
	}
	return a
}
