package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/semaphore"
)

// A worker that runs under a permit. The context of the function ends with the
// caller's or with the permit, whichever comes first.
func ExampleSemaphore_Do() {
	sems, done := open(semaphore.Config{})
	defer done()
	renderers, err := sems.Semaphore("renderers", 2, nil)
	if err != nil {
		panic(err)
	}

	ctx := context.Background()
	err = renderers.Do(ctx, nil, func(ctx context.Context) error {
		fmt.Println("rendering")
		return ctx.Err()
	})
	fmt.Println(err)

	// Work that may not take longer than a while is told when it did.
	err = renderers.Do(ctx, &semaphore.AcquireOptions{MaxHold: 2 * time.Second}, func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	})
	fmt.Println(errors.Is(err, berth.ErrExpired))
	// Output:
	// rendering
	// <nil>
	// true
}
