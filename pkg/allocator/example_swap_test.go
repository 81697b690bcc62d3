package allocator_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
)

// Exchange what does not work for the next one, in one step: nobody gets in
// between, and the handle stays.
func ExampleAllocation_Swap() {
	pools, done := open(allocator.Config{})
	defer done()
	proxies := keys(pools, "proxies", allocator.PoolConfig[string]{}, "a", "b")

	ctx := context.Background()
	proxy := allocate(proxies, nil)
	fmt.Println("begins with", proxy.Value())
	_ = proxy.Rest(time.Hour, "blocked")
	fmt.Println(proxy.Swap(ctx))
	fmt.Println("goes on with", proxy.Value())

	// Nothing else is free now: all stays as it is.
	fmt.Println(errors.Is(proxy.Swap(ctx), berth.ErrBusy), proxy.Value(), proxy.Err())
	// Output:
	// begins with a
	// <nil>
	// goes on with b
	// true b <nil>
}
