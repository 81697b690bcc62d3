package allocator_test

import (
	"context"
	"fmt"

	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/node"
)

// Proxy is what a process makes of a resource, here of the address of a proxy.
type Proxy struct{ Address string }

// dial stands for the call that connects to a proxy.
func dial(_ context.Context, address string) (*Proxy, error) { return &Proxy{Address: address}, nil }

// Put proxies into a pool, take one, use it, give it back. This process dials each
// once. The examples run on the embedded server. In production the rueidis client is
// one of a Redis or Valkey.
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
	n, err := node.New(redis, node.Config{Namespace: "shop"})
	if err != nil {
		panic(err)
	}
	defer func() { _ = n.Close(ctx) }()
	proxies := allocator.New(n, "proxies", allocator.Config[*Proxy]{Open: dial})
	if _, err := proxies.Add(ctx, []string{"10.0.0.1:3128", "10.0.0.2:3128"}, nil); err != nil {
		panic(err)
	}

	proxy, err := proxies.Allocate(ctx, nil)
	if err != nil {
		panic(err)
	}
	fmt.Println("through", proxy.Value().Address)
	fmt.Println(proxy.Release(ctx))
	// Output:
	// through 10.0.0.1:3128
	// <nil>
}
