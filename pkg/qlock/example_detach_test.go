package qlock_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
)

// finish is what another process does with the token, within the lock's lease.
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
	lock, err := qlock.New(n, qlock.Config{}).Resume(ctx, token)
	if err != nil {
		return err // berth.ErrNotHeld: too late, or somebody else has resumed it
	}
	fmt.Println(lock.Via(), lock.Name())
	return lock.Release(ctx)
}

// Hand a lock to another process without giving it back in between: a request
// takes it, and a job that runs later goes on with it.
func ExampleLock_Detach() {
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
	locks := qlock.New(n, qlock.Config{})

	lock, err := locks.Lock(ctx, "export:7", nil)
	if err != nil {
		panic(err)
	}
	token, err := lock.Detach(ctx)
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
	// resumed export:7
	// <nil>
	// true
}
