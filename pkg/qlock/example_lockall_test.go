package qlock_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
)

// locked reports whether somebody holds the lock.
func locked(ctx context.Context, redis rueidis.Client, name string) bool {
	reader, err := inspect.New(redis, inspect.Config{})
	if err != nil {
		panic(err)
	}
	lock, err := reader.Name(ctx, keyspace.Lock, name)
	if err != nil {
		panic(err)
	}
	return lock.Held > 0
}

// LockAll takes several locks or none, and waits for those that others hold; TryLockAll does
// not wait. The order of the names does not matter: all callers lock them in the same order,
// so that no two wait for each other.
func ExampleLocks_LockAll() {
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

	set, err := locks.LockAll(ctx, []string{"account:ben", "account:anna"}, nil)
	if err != nil {
		panic(err)
	}
	fmt.Println("locked", set.Names(), "with", len(set.Fences()), "fences")
	_, err = locks.TryLockAll(ctx, []string{"account:ben", "account:alma"}, nil)
	var refused *berth.AcquireError
	if errors.As(err, &refused) {
		fmt.Println(refused.Name, refused.Reason)
	}
	fmt.Println("alma is locked:", locked(ctx, redis, "account:alma"))
	fmt.Println(set.Release(ctx))
	// Output:
	// locked [account:anna account:ben] with 2 fences
	// account:ben held
	// alma is locked: false
	// <nil>
}
