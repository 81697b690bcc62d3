package semaphore_test

import (
	"context"
	"fmt"
	"time"

	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/semaphore"
)

// report acquires with the options of a call, and prints what was meant.
func report(ctx context.Context, s *semaphore.Semaphore, call *semaphore.AcquireOptions) {
	permit, err := s.Acquire(ctx, call)
	if err != nil {
		panic(err)
	}
	fmt.Println("weight", permit.Weight(), "lease", permit.Lease())
	if err := permit.Release(ctx); err != nil {
		panic(err)
	}
}

// A field that a call leaves zero comes from the semaphore's defaults, then from
// the client's, then from the built-in ones.
func ExampleClient_Semaphore_defaults() {
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
	sems, err := semaphore.New(redis, semaphore.Config{
		Defaults: semaphore.AcquireOptions{Lease: 30 * time.Second, MaxWait: time.Minute},
	})
	if err != nil {
		panic(err)
	}
	defer func() { _ = sems.Close(ctx) }()
	memory, err := sems.Semaphore("memory", 64, &semaphore.AcquireOptions{Weight: 8})
	if err != nil {
		panic(err)
	}
	report(ctx, memory, nil)
	report(ctx, memory, &semaphore.AcquireOptions{Weight: 2})
	report(ctx, memory, &semaphore.AcquireOptions{NoDefaults: true})
	// Output:
	// weight 8 lease 30s
	// weight 2 lease 30s
	// weight 1 lease 10s
}
