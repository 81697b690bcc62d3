package qlock_test

import (
	"context"
	"fmt"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/node"
)

// serve starts a process of a swarm.
func serve(ctx context.Context, redis rueidis.Client, label string) *node.Node {
	n, err := node.New(redis, node.Config{Label: label})
	if err != nil {
		panic(err)
	}
	if err := n.Swarm().Start(ctx); err != nil {
		panic(err)
	}
	return n
}

// The nodes of a swarm watch each other, so that a lock without end goes when its
// process dies. All nodes that take part start the swarm, with the same
// ZombieAfter. Config.Swarm.Auto of the node starts it with the node.
func Example_swarm() {
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
	for _, label := range []string{"billing", "shipping"} {
		n := serve(ctx, redis, label)
		defer func() { _ = n.Close(ctx) }()
	}
	looks, err := node.New(redis, node.Config{}) // who looks need not take part
	if err != nil {
		panic(err)
	}
	defer func() { _ = looks.Close(ctx) }()

	fmt.Println("takes part:", looks.Swarm().Status().Running)
	for other, err := range looks.Swarm().Info(ctx) {
		if err != nil {
			panic(err)
		}
		fmt.Println("a zombie:", other.Zombie)
	}
	flushed, err := looks.Swarm().FlushNow(ctx)
	fmt.Println("flushed:", flushed.Nodes, err)
	// Output:
	// takes part: false
	// a zombie: false
	// a zombie: false
	// flushed: 0 <nil>
}
