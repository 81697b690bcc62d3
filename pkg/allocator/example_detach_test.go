package allocator_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/node"
)

// finish is what another process does with the token, within the lease.
func finish(ctx context.Context, redis rueidis.Client, message []byte) error {
	n, err := node.New(redis, node.Config{})
	if err != nil {
		return err
	}
	defer func() { _ = n.Close(ctx) }()
	accounts := allocator.New(n, "accounts", allocator.Config[string]{})
	var token berth.Token
	if err := token.UnmarshalText(message); err != nil {
		return err
	}
	account, err := accounts.Resume(ctx, token)
	if err != nil {
		return err // berth.ErrNotHeld: too late, or somebody else has resumed it
	}
	fmt.Println("resumed:", account.Value())
	return account.Release(ctx)
}

// Hand a resource to another process without giving it back in between: a request
// takes an account, and a job that runs later goes on with it.
func ExamplePool_Resume() {
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

	account, err := accounts.Allocate(ctx, nil)
	if err != nil {
		panic(err)
	}
	token, err := account.Detach(ctx)
	if err != nil {
		panic(err)
	}
	message, err := token.MarshalText()
	if err != nil {
		panic(err)
	}
	fmt.Println(finish(ctx, redis, message))
	fmt.Println(errors.Is(finish(ctx, redis, message), berth.ErrNotHeld))
	// Output:
	// resumed: anna
	// <nil>
	// true
}
