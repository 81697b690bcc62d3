package qlock_test

import (
	"context"
	"fmt"

	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
)

// charge is work that no two processes may do at a time.
func charge(ctx context.Context, invoice int) error {
	fmt.Println("charging invoice", invoice)
	return ctx.Err() // its context ends when the lock is lost
}

// Take a lock, work under it, give it back. The examples run on the embedded
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
	locks := qlock.New(n, qlock.Config{})

	lock, err := locks.Lock(ctx, "invoice:42", nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(lock.Name(), lock.Via())
	fmt.Println(charge(lock.Context(), 42))
	fmt.Println(lock.Release(ctx))
	// Output:
	// invoice:42 granted
	// charging invoice 42
	// <nil>
	// <nil>
}
