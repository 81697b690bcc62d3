package allocator_test

import (
	"context"
	"fmt"

	"github.com/berth-go/berth/pkg/allocator"
)

// Work with a resource and give it back whatever happens. The context of the
// function ends if the lease is lost meanwhile.
func ExamplePool_Do() {
	pools, done := open(allocator.Config{})
	defer done()
	accounts := keys(pools, "accounts", allocator.PoolConfig[string]{}, "anna")

	ctx := context.Background()
	err := accounts.Do(ctx, nil, func(ctx context.Context, account *allocator.Allocation[string]) error {
		fmt.Println("signed in as", account.Value())
		return ctx.Err()
	})
	fmt.Println(err)
	stats, err := pools.Operator().Stats(ctx, "accounts")
	fmt.Println(stats.Free, "free", err)
	// Output:
	// signed in as anna
	// <nil>
	// 1 free <nil>
}
