package semaphore_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/semaphore"
)

// A permit may take more than one place: gigabytes of memory, connections,
// licences.
func ExampleSemaphore_Acquire_weight() {
	sems, done := open(semaphore.Config{})
	defer done()
	memory, err := sems.Semaphore("memory", 64, nil) // GB
	if err != nil {
		panic(err)
	}

	ctx := context.Background()
	for _, weight := range []int{40, 16, 16, 100} {
		_, err := memory.TryAcquire(ctx, &semaphore.AcquireOptions{Weight: weight})
		var refused *berth.AcquireError
		switch {
		case err == nil:
			fmt.Println(weight, "granted")
		case errors.As(err, &refused):
			fmt.Println(weight, "refused:", refused.Reason)
		}
	}
	// Output:
	// 40 granted
	// 16 granted
	// 16 refused: full
	// 100 refused: too heavy
}
