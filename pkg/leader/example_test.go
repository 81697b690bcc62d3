package leader_test

import (
	"context"
	"fmt"

	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/leader"
	"github.com/berth-go/berth/pkg/node"
)

// schedule is the work of a leader. It passes the fence on to all that it writes.
func schedule(process string, fence, before int64) {
	fmt.Println(process, "leads, with a greater fence:", fence > before)
}

// Three processes stand for election, here one after the other. Each leads for a while, and resigns; the next one leads at once, with a
// greater fence.
func ExampleElection_Run() {
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
	scheduler := leader.New(n, "scheduler", leader.Config{})

	last := int64(0)
	for _, process := range []string{"a", "b", "c"} {
		err := scheduler.Run(ctx, func(ctx context.Context) error {
			fence := scheduler.Fence(ctx)
			schedule(process, fence, last)
			last = fence
			return nil // it resigns
		})
		fmt.Println(err)
	}
	// Output:
	// a leads, with a greater fence: true
	// <nil>
	// b leads, with a greater fence: true
	// <nil>
	// c leads, with a greater fence: true
	// <nil>
}
