package semaphore_test

import (
	"context"
	"fmt"

	"github.com/berth-go/berth/pkg/semaphore"
)

// Change the capacity while it is in use. Nobody loses a permit; below what is
// held, grants pause.
func ExampleOperator_Resize() {
	sems, done := open(semaphore.Config{})
	defer done()
	workers, err := sems.Semaphore("workers", 2, nil)
	if err != nil {
		panic(err)
	}

	ctx := context.Background()
	for range 2 {
		if _, err := workers.Acquire(ctx, nil); err != nil {
			panic(err)
		}
	}
	for _, capacity := range []int{1, 3} {
		if err := sems.Operator().Resize(ctx, workers.Name(), capacity, nil); err != nil {
			panic(err)
		}
		stats, err := sems.Operator().Stats(ctx, workers.Name())
		fmt.Println(stats.Held, "of", stats.Capacity, "held,", stats.Available(), "free", err)
	}
	// Output:
	// 2 of 1 held, 0 free <nil>
	// 2 of 3 held, 1 free <nil>
}
