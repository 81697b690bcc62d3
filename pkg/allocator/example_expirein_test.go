package allocator_test

import (
	"context"
	"fmt"
	"time"

	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/node"
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
	n, err := node.New(redis, node.Config{})
	needsExpiring(err)
	defer func() { _ = n.Close(ctx) }()
	sessions := allocator.New(n, "sessions", allocator.Config[string]{})
	_, err = sessions.Add(ctx, []string{"a", "b", "c"}, nil)
	needsExpiring(err)

	err = sessions.Do(ctx, nil, func(_ context.Context, session *allocator.Allocation[string]) error {
		return session.ExpireIn(10 * time.Minute)
	})
	needsExpiring(err)
	info, err := allocator.NewOperator(n).Resource(ctx, "sessions", "a")
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
