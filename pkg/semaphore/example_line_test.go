package semaphore_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/semaphore"
)

// cross waits in line for the ferry, and crosses alone.
func cross(ctx context.Context, ferry *semaphore.Semaphore, who string, priority int) {
	err := ferry.Do(berth.WithOwner(ctx, who), &semaphore.AcquireOptions{Priority: priority},
		func(context.Context) error {
			fmt.Println(who)
			return nil
		})
	if err != nil {
		panic(err)
	}
}

// Claims are granted in the order in which they came. A higher priority stands
// ahead of all lower ones.
func ExampleSemaphore_Acquire_line() {
	queued := make(chan struct{})
	server, err := embedded.Start()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	redis, err := server.Client()
	if err != nil {
		panic(err)
	}
	defer redis.Close()
	ctx := context.Background()
	n, err := node.New(redis, node.Config{Observer: observe.Func(func(e observe.Event) {
		if e.Kind == observe.Queued {
			queued <- struct{}{}
		}
	})})
	if err != nil {
		panic(err)
	}
	defer func() { _ = n.Close(ctx) }()
	ferry := semaphore.New(n, "ferry", 1, semaphore.Config{})
	permit, err := ferry.Acquire(ctx, nil)
	if err != nil {
		panic(err)
	}

	var crossing sync.WaitGroup
	for _, claim := range []struct {
		who      string
		priority int
	}{{"car", 0}, {"lorry", 0}, {"ambulance", 100}} {
		crossing.Go(func() { cross(ctx, ferry, claim.who, claim.priority) })
		<-queued // so that they come one after the other
	}
	reader, err := inspect.New(redis, inspect.Config{})
	if err != nil {
		panic(err)
	}
	line, err := reader.Waiters(ctx, keyspace.Sem, ferry.Name(), "", 0)
	if err != nil {
		panic(err)
	}
	for _, waiter := range line.Items {
		fmt.Println(waiter.Owner, "has", waiter.Ahead, "ahead")
	}
	if err := permit.Release(ctx); err != nil {
		panic(err)
	}
	crossing.Wait()
	// Output:
	// ambulance has 0 ahead
	// car has 1 ahead
	// lorry has 2 ahead
	// ambulance
	// car
	// lorry
}
