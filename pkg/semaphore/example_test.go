package semaphore_test

import (
	"context"
	"fmt"

	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

// render is work that no more than four processes may do at a time.
func render(ctx context.Context, page int) error {
	fmt.Println("rendering page", page)
	return ctx.Err() // its context ends when the permit is lost
}

// Take a permit, work under it, give it back. The examples run on the embedded
// server. In production the rueidis client is one of a Redis or Valkey.
func Example() {
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
	n, err := node.New(redis, node.Config{Namespace: "shop"})
	if err != nil {
		panic(err)
	}
	defer func() { _ = n.Close(ctx) }()
	gpu := semaphore.New(n, "gpu", 4, semaphore.Config{})
	permit, err := gpu.Acquire(ctx, nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(render(permit.Context(), 1))
	fmt.Println(permit.Release(ctx))
	// Output:
	// rendering page 1
	// <nil>
	// <nil>
}
