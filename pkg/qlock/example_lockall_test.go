package qlock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/qlock"
)

// transfer locks two accounts at once, and prints which.
func transfer(ctx context.Context, locks *qlock.Client, from, to string) (*qlock.LockSet, error) {
	set, err := locks.LockAll(ctx, []string{from, to}, &qlock.LockOptions{MaxWait: 500 * time.Millisecond})
	if err != nil {
		return nil, err
	}
	fmt.Println("locked", set.Names(), "with", len(set.Fences()), "fences")
	return set, nil
}

// LockAll takes several locks or none. The order of the names does not matter: all
// callers lock them in the same order, so that no two wait for each other.
func ExampleClient_LockAll() {
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
	locks, err := qlock.New(redis, qlock.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = locks.Close(ctx) }()

	set, err := transfer(ctx, locks, "account:ben", "account:anna")
	if err != nil {
		panic(err)
	}
	_, err = transfer(ctx, locks, "account:ben", "account:alma")
	var refused *berth.AcquireError
	if errors.As(err, &refused) {
		fmt.Println(refused.Name, refused.Reason)
	}
	reader, err := inspect.New(redis, inspect.Config{})
	if err != nil {
		panic(err)
	}
	alma, err := reader.Name(ctx, keyspace.Lock, "account:alma")
	fmt.Println("alma is locked:", alma.Held > 0, err)
	fmt.Println(set.Release(ctx))
	// Output:
	// locked [account:anna account:ben] with 2 fences
	// account:ben timed out
	// alma is locked: false <nil>
	// <nil>
}
