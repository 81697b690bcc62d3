package allocator_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/node"
)

// DoHealthy runs a function with a resource that works now.
func ExamplePool_DoHealthy() {
	server, err := embedded.Start()
	needsHealthy(err)
	defer server.Close()
	redis, err := server.Client()
	needsHealthy(err)
	defer redis.Close()
	ctx := context.Background()
	n, err := node.New(redis, node.Config{})
	needsHealthy(err)
	defer func() { _ = n.Close(ctx) }()
	sessions := allocator.New(n, "sessions", allocator.Config[string]{
		Healthy: func(_ context.Context, session string) error {
			if session == "a" {
				return errors.New("signed out")
			}
			return nil
		},
	})
	_, err = sessions.Add(ctx, []string{"a", "b", "c"}, nil)
	needsHealthy(err)

	err = sessions.DoHealthy(ctx, nil, func(_ context.Context, session *allocator.Allocation[string]) error {
		fmt.Println("working as", session.Value())
		return nil
	})
	info, _ := allocator.NewOperator(n).Resource(ctx, "sessions", "a")
	fmt.Println(err, info.State, info.Reason)
	// Output:
	// working as b
	// <nil> resting signed out
}

// needsHealthy ends the example where something has failed.
func needsHealthy(err error) {
	if err != nil {
		panic(err)
	}
}
