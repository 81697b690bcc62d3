package semaphore_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/semaphore"
)

// Claims stand in line in the order in which they came; a higher priority goes
// ahead of lower ones.
func ExampleSemaphore_Acquire_line() {
	queued := make(chan struct{}, 1)
	sems, done := open(semaphore.Config{Observer: observe.Func(func(e observe.Event) {
		if e.Kind == observe.Queued {
			queued <- struct{}{}
		}
	})})
	defer done()
	ferry, err := sems.Semaphore("ferry", 1, nil)
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	first, err := ferry.Acquire(ctx, nil)
	if err != nil {
		panic(err)
	}

	var waiting sync.WaitGroup
	join := func(who string, priority int) {
		waiting.Go(func() {
			ctx := berth.WithOwner(ctx, who)
			opts := &semaphore.AcquireOptions{Priority: priority}
			if err := ferry.Do(ctx, opts, func(context.Context) error { fmt.Println(who); return nil }); err != nil {
				panic(err)
			}
		})
		<-queued
	}
	join("car", 0)
	join("lorry", 0)
	join("ambulance", 100)

	for waiter, err := range sems.Operator().Waiters(ctx, ferry.Name()) {
		fmt.Println(waiter.Owner, "has", waiter.Ahead, "ahead", err)
	}
	if err := first.Release(ctx); err != nil {
		panic(err)
	}
	waiting.Wait()
	// Output:
	// ambulance has 0 ahead <nil>
	// car has 1 ahead <nil>
	// lorry has 2 ahead <nil>
	// ambulance
	// car
	// lorry
}
