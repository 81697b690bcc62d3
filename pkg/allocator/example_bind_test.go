package allocator_test

import (
	"context"
	"fmt"
	"time"

	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/node"
)

// visit is a request of a customer that needs a proxy for a moment.
func visit(ctx context.Context, proxies *allocator.Pool[string], customer string) {
	proxy, err := proxies.Allocate(ctx, &allocator.AllocateOptions{Bind: customer, BindFor: 24 * time.Hour})
	if err != nil {
		panic(err)
	}
	fmt.Println(customer, "has", proxy.Resource())
	if err := proxy.Release(ctx); err != nil {
		panic(err)
	}
}

// Give a customer the proxy that the customer had before. If another customer has
// that proxy, nobody waits: the customer gets another one and is bound to that.
func ExamplePool_Allocate_bind() {
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
	proxies := allocator.New(n, "proxies", allocator.Config[string]{})
	if _, err := proxies.Add(ctx, []string{"a", "b", "c"}, nil); err != nil {
		panic(err)
	}

	visit(ctx, proxies, "customer-7")
	visit(ctx, proxies, "customer-8")
	visit(ctx, proxies, "customer-7") // though c has been free for longer

	if err := proxies.Bind(ctx, "customer-7", "c", nil); err != nil {
		panic(err)
	}
	visit(ctx, proxies, "customer-7")
	fmt.Println(proxies.Unbind(ctx, "customer-7"))
	for binding, err := range allocator.NewOperator(n).Bindings(ctx, "proxies") {
		fmt.Println(binding.Name, binding.Resource, binding.Left > 23*time.Hour, err)
	}
	// Output:
	// customer-7 has a
	// customer-8 has b
	// customer-7 has a
	// customer-7 has c
	// <nil>
	// customer-8 b true <nil>
}
