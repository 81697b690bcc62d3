package qlock_test

import (
	"context"
	"fmt"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/qlock"
)

// serve starts a process of a swarm.
func serve(ctx context.Context, redis rueidis.Client, label string) *qlock.Client {
	locks, err := qlock.New(redis, qlock.Config{Label: label})
	if err != nil {
		panic(err)
	}
	if err := locks.Swarm().Start(ctx); err != nil {
		panic(err)
	}
	return locks
}

// The nodes of a swarm watch each other, so that a lock without end goes when its
// process dies. All nodes that take part start the swarm, with the same
// ZombieAfter. Config.Swarm.Auto starts it with the client.
func ExampleClient_Swarm() {
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
	for _, label := range []string{"billing", "shipping"} {
		node := serve(ctx, redis, label)
		defer func() { _ = node.Close(ctx) }()
	}

	fmt.Println("takes part:", locks.Swarm().Status().Running) // who looks need not
	for node, err := range locks.Swarm().Info(ctx) {
		if err != nil {
			panic(err)
		}
		fmt.Println("a zombie:", node.Zombie)
	}
	flushed, err := locks.Swarm().FlushNow(ctx)
	fmt.Println("flushed:", flushed.Nodes, err)
	// Output:
	// takes part: false
	// a zombie: false
	// a zombie: false
	// flushed: 0 <nil>
}
