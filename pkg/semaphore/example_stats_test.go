package semaphore_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/berth-go/berth/pkg/semaphore"
)

// Look at all semaphores of a namespace, the fullest first.
func ExampleOperator_All() {
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
	var all []semaphore.Stats
	for stats, err := range sems.Operator().All(ctx) {
		if err != nil {
			panic(err)
		}
		all = append(all, stats)
	}
	slices.SortFunc(all, func(a, b semaphore.Stats) int { return cmp.Compare(b.Share(), a.Share()) })
	for _, stats := range all {
		fmt.Printf("%s %.0f %%\n", stats.Name, 100*stats.Share())
	}
	// Output:
	// gpu 75 %
	// disk 50 %
	// cpu 25 %
}
