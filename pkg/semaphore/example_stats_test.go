package semaphore_test

import (
	"context"
	"fmt"

	"github.com/berth-go/berth/pkg/semaphore"
)

// Look at all semaphores of a namespace, the fullest first.
func ExampleClient_Top() {
	sems, done := open(semaphore.Config{})
	defer done()

	ctx := context.Background()
	for name, weight := range map[string]int{"gpu": 3, "cpu": 1, "disk": 2} {
		s, err := sems.Semaphore(name, 4, nil)
		if err != nil {
			panic(err)
		}
		if _, err := s.Acquire(ctx, &semaphore.AcquireOptions{Weight: weight}); err != nil {
			panic(err)
		}
	}
	top, err := sems.Top(ctx, 2)
	if err != nil {
		panic(err)
	}
	for _, stats := range top {
		fmt.Printf("%s %.0f %%\n", stats.Name, 100*stats.Share())
	}
	// Output:
	// gpu 75 %
	// disk 50 %
}
