package semaphore_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/semaphore"
)

// Take a permit if one is free, and say what is in the way if none is.
func ExampleSemaphore_TryAcquire() {
	sems, done := open(semaphore.Config{})
	defer done()
	nightly, err := sems.Semaphore("nightly", 1, nil)
	if err != nil {
		panic(err)
	}

	ctx := context.Background()
	running, err := nightly.TryAcquire(ctx, nil)
	if err != nil {
		panic(err)
	}

	_, err = nightly.TryAcquire(ctx, nil)
	var refused *berth.AcquireError
	switch {
	case errors.As(err, &refused) && errors.Is(err, berth.ErrBusy):
		fmt.Printf("%s: %d of %d held, %d waiting\n", refused.Reason, refused.Held, refused.Capacity, refused.Waiting)
	case err != nil:
		fmt.Println("the server was not reached, or refuses:", err)
	}

	fmt.Println(running.Release(ctx))
	// Output:
	// full: 1 of 1 held, 0 waiting
	// <nil>
}
