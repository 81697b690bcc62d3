package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/semaphore"
)

// With NoRenew the permit lasts for its lease, and for another one from each
// Renew on.
func ExamplePermit_Renew() {
	sems, done := open(semaphore.Config{})
	defer done()
	export, err := sems.Semaphore("export", 1, nil)
	if err != nil {
		panic(err)
	}

	ctx := context.Background()
	permit, err := export.Acquire(ctx, &semaphore.AcquireOptions{NoRenew: true, Lease: 2 * time.Second})
	if err != nil {
		panic(err)
	}
	for part := range 3 {
		fmt.Println("part", part, permit.Renew(ctx))
	}

	<-permit.Done() // nobody renews it any more
	fmt.Println(errors.Is(context.Cause(permit.Context()), berth.ErrExpired))
	fmt.Println(errors.Is(permit.Renew(ctx), berth.ErrExpired))
	// Output:
	// part 0 <nil>
	// part 1 <nil>
	// part 2 <nil>
	// true
	// true
}
