package semaphore_test

import (
	"context"
	"fmt"
	"time"

	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/node"
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

// A field that a call leaves zero comes from the defaults of the semaphore, then from
// the built-in ones.
func ExampleConfig_defaults() {
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
	n, err := node.New(redis, node.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = n.Close(ctx) }()
	memory := semaphore.New(n, "memory", 64, semaphore.Config{
		Defaults: semaphore.AcquireOptions{Weight: 8, Lease: 30 * time.Second, MaxWait: time.Minute},
	})
	report(ctx, memory, nil)
	report(ctx, memory, &semaphore.AcquireOptions{Weight: 2})
	report(ctx, memory, &semaphore.AcquireOptions{NoDefaults: true})
	// Output:
	// weight 8 lease 30s
	// weight 2 lease 30s
	// weight 1 lease 10s
}
