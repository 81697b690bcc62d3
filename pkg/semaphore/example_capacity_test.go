package semaphore_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

// deploy stands for a process whose program names a capacity.
func deploy(ctx context.Context, redis rueidis.Client, policy semaphore.CapacityPolicy, capacity int) {
	n, err := node.New(redis, node.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = n.Close(ctx) }()
	gpu := semaphore.New(n, "gpu", capacity, semaphore.Config{CapacityPolicy: policy})
	_, err = gpu.TryAcquire(ctx, nil)
	var refused *berth.AcquireError
	if errors.As(err, &refused) {
		fmt.Printf("%s, asks for %d: %s\n", policy, capacity, refused.Reason)
		return
	}
	reader, err := inspect.New(redis, inspect.Config{})
	if err != nil {
		panic(err)
	}
	seen, err := reader.Name(ctx, keyspace.Sem, gpu.Name())
	fmt.Printf("%s, asks for %d: granted, capacity %d, %v\n", policy, capacity, seen.Capacity, err)
}

// Where two programs name different capacities, the stored one counts by default.
func ExampleCapacityPolicy() {
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
	deploy(ctx, redis, semaphore.CapacityStored, 2)
	deploy(ctx, redis, semaphore.CapacityStored, 8)
	deploy(ctx, redis, semaphore.CapacityStrict, 8)
	deploy(ctx, redis, semaphore.CapacityOverride, 8)
	// Output:
	// stored, asks for 2: granted, capacity 2, <nil>
	// stored, asks for 8: granted, capacity 2, <nil>
	// strict, asks for 8: capacity differs
	// override, asks for 8: granted, capacity 8, <nil>
}
