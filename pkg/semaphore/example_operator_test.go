package semaphore_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/semaphore"
)

// See who holds a semaphore, and end somebody's permit by its id alone.
func ExampleOperator_Release() {
	sems, done := open(semaphore.Config{Label: "host-1/render/4711"})
	defer done()
	gpu, err := sems.Semaphore("gpu", 2, nil)
	if err != nil {
		panic(err)
	}

	ctx := context.Background()
	permit, err := gpu.Acquire(ctx, &semaphore.AcquireOptions{Meta: map[string]string{"job": "42"}})
	if err != nil {
		panic(err)
	}
	for holder, err := range sems.Operator().Holders(ctx, gpu.Name()) {
		if err != nil {
			panic(err)
		}
		fmt.Println(holder.Label, "holds", holder.Weight, "for job", holder.Meta["job"])
		if _, err := sems.Operator().Release(ctx, berth.Target{Name: "gpu", Claim: holder.ID}); err != nil {
			panic(err)
		}
	}

	// The holder's process is told at once if it has ever had to wait; else with
	// its next heartbeat, or its next call.
	fmt.Println(errors.Is(permit.Release(ctx), berth.ErrReleased))
	// Output:
	// host-1/render/4711 holds 1 for job 42
	// true
}
