package semaphore_test

import (
	"context"
	"fmt"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

// finish is what another process does with the token, within the permit's lease.
func finish(ctx context.Context, redis rueidis.Client, message []byte) error {
	n, err := node.New(redis, node.Config{})
	if err != nil {
		return err
	}
	defer func() { _ = n.Close(ctx) }()
	var token berth.Token
	if err := token.UnmarshalText(message); err != nil {
		return err
	}
	permit, err := semaphore.New(n, "licences", 1, semaphore.Config{}).Resume(ctx, token)
	if err != nil {
		return err // berth.ErrNotHeld: too late, or somebody else has resumed it
	}
	fmt.Println("resumed:", permit.Name())
	return permit.Release(ctx)
}

// Hand a permit to another process without giving it back in between: a request
// takes it, and a job that runs later goes on with it.
func ExamplePermit_Detach() {
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
	licences := semaphore.New(n, "licences", 1, semaphore.Config{})
	permit, err := licences.Acquire(ctx, nil)
	if err != nil {
		panic(err)
	}
	token, err := permit.Detach(ctx)
	if err != nil {
		panic(err)
	}
	message, err := token.MarshalText()
	if err != nil {
		panic(err)
	}
	fmt.Println(finish(ctx, redis, message))
	// Output:
	// resumed: licences
	// <nil>
}
