package allocator_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
)

// Let an account rest after a "too many requests", and go on with another one.
func ExampleAllocation_Rest() {
	pools, done := open(allocator.Config{})
	defer done()
	accounts := keys(pools, "accounts", allocator.PoolConfig[string]{}, "anna", "ben")

	ctx := context.Background()
	account := allocate(accounts, nil)
	_ = account.Rest(15*time.Minute, "429 of the search")
	if err := account.Release(ctx); err != nil { // the rest begins here
		panic(err)
	}
	info, err := pools.Operator().Resource(ctx, "accounts", "anna")
	fmt.Println(info.Resource, info.State, info.Left > 14*time.Minute, info.Reason, err)
	fmt.Println(allocate(accounts, nil).Value())
	// Output:
	// anna resting true 429 of the search <nil>
	// ben
}

// Take a resource out of turn by hand, until somebody ends that.
func ExamplePool_Rest() {
	pools, done := open(allocator.Config{})
	defer done()
	accounts := keys(pools, "accounts", allocator.PoolConfig[string]{}, "anna")

	ctx := context.Background()
	fmt.Println(accounts.Rest(ctx, "anna", berth.Forever, "locked by its owner"))
	_, err := accounts.TryAllocate(ctx, nil)
	fmt.Println(errors.Is(err, berth.ErrBusy))

	fmt.Println(accounts.Rest(ctx, "anna", 0, ""))
	fmt.Println(allocate(accounts, nil).Value())
	fmt.Println(accounts.Rest(ctx, "berta", time.Hour, ""))
	// Output:
	// <nil>
	// true
	// <nil>
	// anna
	// berth: absent
}

// A cooldown is a rest after every hold. Who waits is given the resource when it is
// over.
func ExamplePoolConfig_cooldown() {
	pools, done := open(allocator.Config{})
	defer done()
	const cooldown = 400 * time.Millisecond
	accounts := keys(pools, "accounts", allocator.PoolConfig[string]{Cooldown: cooldown}, "anna")

	ctx := context.Background()
	if err := allocate(accounts, nil).Release(ctx); err != nil {
		panic(err)
	}
	next := allocate(accounts, nil)
	fmt.Println(next.Value(), next.Waited() > cooldown/2)
	// Output: anna true
}
