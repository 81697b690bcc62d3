package allocator_test

import (
	"context"
	"fmt"

	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/node"
)

// The order in which the next claims get the free resources.
func ExamplePool_FreeInOrder() {
	server, err := embedded.Start()
	needsInOrder(err)
	defer server.Close()
	redis, err := server.Client()
	needsInOrder(err)
	defer redis.Close()
	ctx := context.Background()
	n, err := node.New(redis, node.Config{})
	needsInOrder(err)
	defer func() { _ = n.Close(ctx) }()
	sessions := allocator.New(n, "sessions", allocator.Config[string]{Policy: allocator.MostRecent})
	_, err = sessions.Add(ctx, []string{"a", "b", "c"}, nil)
	needsInOrder(err)

	for info, err := range sessions.FreeInOrder(ctx) {
		fmt.Println(info.Resource, info.State, err)
	}
	next, err := sessions.TryAllocate(ctx, nil)
	fmt.Println(next.Resource(), err)
	// Output:
	// c free <nil>
	// b free <nil>
	// a free <nil>
	// c <nil>
}

// needsInOrder ends the example where something has failed.
func needsInOrder(err error) {
	if err != nil {
		panic(err)
	}
}
