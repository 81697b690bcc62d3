package qlock_test

import (
	"context"
	"fmt"

	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/qlock"
)

// In a swarm nodes watch each other, so that a lock without end does not stay
// behind when its process dies. All nodes that take part start it, with the same
// ZombieAfter; Config.Swarm.Auto does so with the client.
func ExampleClient_Swarm() {
	server, err := embedded.Start()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	ctx := context.Background()
	for _, label := range []string{"billing", "shipping"} {
		locks, done := connect(server, qlock.Config{Label: label})
		defer done()
		if err := locks.Swarm().Start(ctx); err != nil {
			panic(err)
		}
	}

	looking, done := connect(server, qlock.Config{}) // need not take part to look
	defer done()
	fmt.Println("running:", looking.Swarm().Status().Running)
	nodes := 0
	for node, err := range looking.Swarm().Info(ctx) {
		if err != nil {
			panic(err)
		}
		if !node.Zombie {
			nodes++
		}
	}
	fmt.Println("nodes:", nodes)
	flushed, err := looking.Swarm().FlushNow(ctx)
	fmt.Println("dead:", flushed.Nodes, err)
	// Output:
	// running: false
	// nodes: 2
	// dead: 0 <nil>
}
