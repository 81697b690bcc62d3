package allocator_test

import (
	"context"
	"fmt"

	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/observe"
)

// Everything that happens is one event to one observer: count it, log it, trace
// it. docs/generated/events.md lists the kinds.
func ExampleConfig_observer() {
	pools, done := open(allocator.Config{
		Observer: observe.Func(func(e observe.Event) {
			fmt.Println(e.Kind, e.Name, e.Resource)
		}),
	})
	defer done()
	accounts := keys(pools, "accounts", allocator.PoolConfig[string]{}, "anna", "ben")

	err := accounts.Do(context.Background(), nil, func(ctx context.Context, account *allocator.Allocation[string]) error {
		return account.Swap(ctx)
	})
	fmt.Println(err)
	// Output:
	// granted accounts anna
	// swapped accounts ben
	// released accounts ben
	// <nil>
}
