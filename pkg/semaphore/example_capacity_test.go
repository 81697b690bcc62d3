package semaphore_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/semaphore"
)

// What happens when two clients name different capacities: by default the one
// that is stored counts.
func ExampleCapacityPolicy() {
	server, err := embedded.Start()
	if err != nil {
		panic(err)
	}
	defer server.Close()

	ctx := context.Background()
	ask := func(policy semaphore.CapacityPolicy, capacity int) {
		sems, done := connect(server, semaphore.Config{CapacityPolicy: policy})
		defer done()
		gpu, err := sems.Semaphore("gpu", capacity, nil)
		if err != nil {
			panic(err)
		}
		_, err = gpu.TryAcquire(ctx, nil)
		var refused *berth.AcquireError
		if errors.As(err, &refused) {
			fmt.Printf("%s, asked for %d: %s\n", policy, capacity, refused.Reason)
			return
		}
		stats, err := sems.Operator().Stats(ctx, gpu.Name())
		fmt.Printf("%s, asked for %d: granted, capacity %d, %v\n", policy, capacity, stats.Capacity, err)
	}
	ask(semaphore.CapacityStored, 2)
	ask(semaphore.CapacityStored, 8)
	ask(semaphore.CapacityStrict, 8)
	ask(semaphore.CapacityOverride, 8)
	// Output:
	// stored, asked for 2: granted, capacity 2, <nil>
	// stored, asked for 8: granted, capacity 2, <nil>
	// strict, asked for 8: capacity differs
	// override, asked for 8: granted, capacity 8, <nil>
}
