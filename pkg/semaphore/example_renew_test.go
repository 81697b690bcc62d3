package semaphore_test

import (
	"context"
	"fmt"
	"time"

	"github.com/berth-go/berth/pkg/semaphore"
)

// With NoRenew the permit lasts for its lease, and for another one from each
// Renew on.
func ExamplePermit_Renew() {
	sems, done := open(semaphore.Config{})
	defer done()
	export, err := sems.Semaphore("export", 1)
	if err != nil {
		panic(err)
	}

	ctx := context.Background()
	permit, err := export.Acquire(ctx, &semaphore.AcquireOptions{NoRenew: true, Lease: time.Second})
	if err != nil {
		panic(err)
	}
	for part := range 3 {
		fmt.Println("part", part, permit.Renew(ctx))
	}

	<-permit.Done() // nobody renews it any more
	fmt.Println(context.Cause(permit.Context()))
	fmt.Println(permit.Renew(ctx))
	// Output:
	// part 0 <nil>
	// part 1 <nil>
	// part 2 <nil>
	// berth: hold expired
	// berth: hold expired
}
