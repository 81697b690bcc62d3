package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/semaphore"
)

// Wait for a bounded time, and tell apart the ways in which a wait ends.
func ExampleSemaphore_Acquire_wait() {
	sems, done := open(semaphore.Config{})
	defer done()
	gpu, err := sems.Semaphore("gpu", 1, nil)
	if err != nil {
		panic(err)
	}
	if _, err := gpu.Acquire(context.Background(), nil); err != nil {
		panic(err)
	}

	try := func(ctx context.Context) {
		_, err := gpu.Acquire(ctx, &semaphore.AcquireOptions{MaxWait: time.Second})
		switch {
		case errors.Is(err, context.Canceled):
			fmt.Println("left:", context.Cause(ctx))
		case errors.Is(err, berth.ErrBusy):
			fmt.Println("others were in the way for too long")
		case errors.Is(err, berth.ErrNotAcquired):
			fmt.Println("not acquired:", err)
		}
	}
	try(context.Background())

	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("the service shuts down"))
	try(ctx)
	// Output:
	// others were in the way for too long
	// left: the service shuts down
}
