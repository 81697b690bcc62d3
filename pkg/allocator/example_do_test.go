package allocator_test

import (
	"context"
	"fmt"

	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

// post is work with an account.
func post(ctx context.Context, account *allocator.Allocation[string]) error {
	fmt.Println("posting as", account.Value())
	return ctx.Err() // ctx ends when the lease is lost
}

// Do runs a function with a resource and gives the resource back, even after a
// panic.
func ExamplePool_Do() {
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
	accounts := allocator.New(n, "accounts", allocator.Config[string]{})
	if _, err := accounts.Add(ctx, []string{"anna"}, nil); err != nil {
		panic(err)
	}

	fmt.Println(accounts.Do(ctx, nil, post))
	reader, err := inspect.New(redis, inspect.Config{})
	if err != nil {
		panic(err)
	}
	pool, err := reader.Name(ctx, keyspace.Pool, "accounts")
	fmt.Println(pool.Pool.Free, "free", err)
	// Output:
	// posting as anna
	// <nil>
	// 1 free <nil>
}
