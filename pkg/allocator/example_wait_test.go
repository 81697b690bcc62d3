package allocator_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
)

// Wait in line for a resource, first come, first served: what comes back goes to
// whoever has waited longest.
func ExamplePool_Allocate() {
	pools, done := open(allocator.Config{})
	defer done()
	licences := keys(pools, "licences", allocator.PoolConfig[string]{}, "ABC-123")

	ctx := context.Background()
	first := allocate(licences, nil)
	granted := make(chan *allocator.Allocation[string])
	go func() {
		next, err := licences.Allocate(ctx, nil)
		if err != nil {
			panic(err)
		}
		granted <- next
	}()
	fmt.Println("first", first.Value(), first.Release(ctx))
	next := <-granted
	fmt.Println("next", next.Value(), next.Fence() > first.Fence())
	// Output:
	// first ABC-123 <nil>
	// next ABC-123 true
}

// Wait for a bounded time, or not at all, and tell apart the ways in which that
// ends.
func ExamplePool_Allocate_wait() {
	pools, done := open(allocator.Config{})
	defer done()
	licences := keys(pools, "licences", allocator.PoolConfig[string]{}, "ABC-123")
	allocate(licences, nil)

	tell := func(ctx context.Context, err error) {
		switch {
		case errors.Is(err, context.Canceled):
			fmt.Println("left:", context.Cause(ctx))
		case errors.Is(err, berth.ErrBusy):
			fmt.Println("others have them all")
		case errors.Is(err, berth.ErrNotAcquired):
			fmt.Println("not acquired:", err)
		}
	}
	ctx := context.Background()
	_, err := licences.TryAllocate(ctx, nil)
	tell(ctx, err)
	_, err = licences.Allocate(ctx, &allocator.AllocateOptions{MaxWait: time.Second})
	tell(ctx, err)

	ctx, cancel := context.WithCancelCause(ctx)
	cancel(errors.New("the service shuts down"))
	_, err = licences.Allocate(ctx, nil)
	tell(ctx, err)
	// Output:
	// others have them all
	// others have them all
	// left: the service shuts down
}
