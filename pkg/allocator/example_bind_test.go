package allocator_test

import (
	"context"
	"fmt"
	"time"

	"github.com/berth-go/berth/pkg/allocator"
)

// Give a customer the proxy that it had before, if that is free: what somebody else
// has is no reason to wait, and the customer is bound to the new one then.
func ExamplePool_Allocate_bind() {
	pools, done := open(allocator.Config{})
	defer done()
	proxies := keys(pools, "proxies", allocator.PoolConfig[string]{}, "a", "b", "c")

	ctx := context.Background()
	customer := &allocator.AllocateOptions{Bind: "customer-7", BindFor: 24 * time.Hour}
	visit := func() {
		proxy := allocate(proxies, customer)
		fmt.Println("customer-7 has", proxy.Resource())
		if err := proxy.Release(ctx); err != nil {
			panic(err)
		}
	}
	visit()
	allocate(proxies, nil) // another customer takes b
	visit()                // though c has been free for longer

	if err := proxies.Bind(ctx, "customer-7", "c", nil); err != nil {
		panic(err)
	}
	visit()
	for binding, err := range pools.Operator().Bindings(ctx, "proxies") {
		fmt.Println(binding.Name, binding.Resource, binding.Left > 23*time.Hour, err)
	}
	fmt.Println(proxies.Unbind(ctx, "customer-7"))
	// Output:
	// customer-7 has a
	// customer-7 has a
	// customer-7 has c
	// customer-7 c true <nil>
	// <nil>
}
