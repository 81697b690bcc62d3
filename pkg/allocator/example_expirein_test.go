package allocator_test

import (
	"context"
	"fmt"
	"time"

	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/embedded"
)

// A session that the other side will end soon leaves the pool by itself.
func ExampleAllocation_ExpireIn() {
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
	pools, err := allocator.New(redis, allocator.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = pools.Close(ctx) }()
	sessions, err := allocator.NewPool(pools, "sessions", allocator.PoolConfig[string]{})
	if err != nil {
		panic(err)
	}
	if _, err := sessions.Add(ctx, []string{"a", "b", "c"}, nil); err != nil {
		panic(err)
	}

	err = sessions.Do(ctx, nil, func(_ context.Context, session *allocator.Allocation[string]) error {
		return session.ExpireIn(10 * time.Minute)
	})
	if err != nil {
		panic(err)
	}
	info, err := pools.Operator().Resource(ctx, "sessions", "a")
	fmt.Println(info.State, info.Expiry.Round(time.Minute), err)
	// Output:
	// free 10m0s <nil>
}
