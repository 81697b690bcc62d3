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
	needsExpiring(err)
	defer server.Close()
	redis, err := server.Client()
	needsExpiring(err)
	defer redis.Close()
	ctx := context.Background()
	pools, err := allocator.New(redis, allocator.Config{})
	needsExpiring(err)
	defer func() { _ = pools.Close(ctx) }()
	sessions, err := allocator.NewPool(pools, "sessions", allocator.PoolConfig[string]{})
	needsExpiring(err)
	_, err = sessions.Add(ctx, []string{"a", "b", "c"}, nil)
	needsExpiring(err)

	err = sessions.Do(ctx, nil, func(_ context.Context, session *allocator.Allocation[string]) error {
		return session.ExpireIn(10 * time.Minute)
	})
	needsExpiring(err)
	info, err := pools.Operator().Resource(ctx, "sessions", "a")
	fmt.Println(info.State, info.Expiry.Round(time.Minute), err)
	// Output:
	// free 10m0s <nil>
}

// needsExpiring ends the example where something has failed.
func needsExpiring(err error) {
	if err != nil {
		panic(err)
	}
}
