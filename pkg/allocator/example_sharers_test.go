package allocator_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/node"
)

// take allocates from a pool of mirrors, and prints what it got.
func take(ctx context.Context, mirrors *allocator.Pool[string]) {
	mirror, err := mirrors.TryAllocate(ctx, nil)
	if errors.Is(err, berth.ErrBusy) {
		fmt.Println("each has two users")
		return
	}
	if err != nil {
		panic(err)
	}
	fmt.Println(mirror.Value())
}

// Up to MaxSharers may hold one resource at once, each with a lease of its own. With
// Shared: true instead, a pool hands its resources out in turn, without leases.
func ExampleConfig_maxSharers() {
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
	mirrors := allocator.New(n, "mirrors", allocator.Config[string]{MaxSharers: 2})
	if _, err := mirrors.Add(ctx, []string{"north", "south"}, nil); err != nil {
		panic(err)
	}

	for range 5 {
		take(ctx, mirrors)
	}
	// Output:
	// north
	// south
	// north
	// south
	// each has two users
}
