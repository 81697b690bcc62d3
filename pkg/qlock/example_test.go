package qlock_test

import (
	"context"
	"fmt"

	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/qlock"
)

// Take a lock, work under it, give it back. In production the rueidis client is
// one of a Redis or Valkey; here it is one of the embedded server, so that the
// examples run with nothing but Go.
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
	locks, err := qlock.New(redis, qlock.Config{Namespace: "shop"})
	if err != nil {
		panic(err)
	}

	lock, err := locks.Lock(ctx, "invoice:42", nil)
	if err != nil {
		panic(err)
	}
	stats, err := locks.Operator().Stats(ctx, "invoice:42")
	fmt.Println(lock.Name(), lock.Process(), stats.Held(), err)

	fmt.Println(lock.Release(ctx))
	fmt.Println(locks.Close(ctx))
	// Output:
	// invoice:42 granted true <nil>
	// <nil>
	// <nil>
}

// open is how the other examples begin: a client on an embedded server of its
// own. Example has it written out.
func open(cfg qlock.Config) (locks *qlock.Client, done func()) {
	server, err := embedded.Start()
	if err != nil {
		panic(err)
	}
	locks, disconnect := connect(server, cfg)
	return locks, func() {
		disconnect()
		server.Close()
	}
}

// connect makes one more client, as another process would.
func connect(server *embedded.Server, cfg qlock.Config) (locks *qlock.Client, done func()) {
	redis, err := server.Client()
	if err != nil {
		panic(err)
	}
	locks, err = qlock.New(redis, cfg)
	if err != nil {
		panic(err)
	}
	return locks, func() {
		if err := locks.Close(context.Background()); err != nil {
			panic(err)
		}
		redis.Close()
	}
}
