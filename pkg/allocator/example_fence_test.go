package allocator_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/fence"
)

// A process that was stopped past its lease does not know yet that somebody else has
// its account. What the account protects does, by the fence of each grant.
func ExampleAllocation_Fence() {
	pools, done := open(allocator.Config{})
	defer done()
	accounts := keys(pools, "accounts", allocator.PoolConfig[string]{}, "anna")

	ctx := context.Background()
	var guard fence.Memory // where the account is used
	post := func(a *allocator.Allocation[string], text string) {
		err := guard.Do(ctx, a.Resource(), a.Fence(), func() error {
			fmt.Println("posted:", text)
			return nil
		})
		if errors.Is(err, fence.ErrStale) {
			fmt.Println("refused:", text)
		}
	}

	old := allocate(accounts, &allocator.AllocateOptions{NoRenew: true, Lease: time.Second})
	post(old, "first")
	next := allocate(accounts, nil) // waits until that lease has ended
	post(next, "second")
	post(old, "late")
	// Output:
	// posted: first
	// posted: second
	// refused: late
}
