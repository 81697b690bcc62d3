package semaphore_test

import (
	"context"
	"fmt"

	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/semaphore"
)

// Take a permit, work under it, give it back. In production the rueidis client
// is one of a Redis or Valkey; here it is one of the embedded server, so that
// the examples run with nothing but Go.
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
	sems, err := semaphore.New(redis, semaphore.Config{Namespace: "shop"})
	if err != nil {
		panic(err)
	}

	gpu, err := sems.Semaphore("gpu", 4, nil)
	if err != nil {
		panic(err)
	}
	permit, err := gpu.Acquire(ctx, nil)
	if err != nil {
		panic(err)
	}
	stats, err := sems.Operator().Stats(ctx, gpu.Name())
	fmt.Println(stats.Held, "held,", stats.Available(), "free", err)

	fmt.Println(permit.Release(ctx))
	fmt.Println(sems.Close(ctx))
	// Output:
	// 1 held, 3 free <nil>
	// <nil>
	// <nil>
}

// open is how the other examples begin: a client on an embedded server of its
// own. Example has it written out.
func open(cfg semaphore.Config) (sems *semaphore.Client, done func()) {
	server, err := embedded.Start()
	if err != nil {
		panic(err)
	}
	sems, disconnect := connect(server, cfg)
	return sems, func() {
		disconnect()
		server.Close()
	}
}

// connect makes one more client, as another process would.
func connect(server *embedded.Server, cfg semaphore.Config) (sems *semaphore.Client, done func()) {
	redis, err := server.Client()
	if err != nil {
		panic(err)
	}
	sems, err = semaphore.New(redis, cfg)
	if err != nil {
		panic(err)
	}
	return sems, func() {
		if err := sems.Close(context.Background()); err != nil {
			panic(err)
		}
		redis.Close()
	}
}
