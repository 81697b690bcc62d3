package leader_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/leader"
	"github.com/berth-go/berth/pkg/node"
)

// untilWanted works until its context ends, and says why that was.
func untilWanted(ctx context.Context) {
	<-ctx.Done()
	if errors.Is(context.Cause(ctx), leader.ErrWanted) {
		fmt.Println("finishes its work: it still leads")
	}
}

// An operator asks for leadership back. The function still leads until it returns; then the next in line leads, or
// again this process if nobody else stands.
func ExampleErrWanted() {
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

	term := 0
	err = leader.New(n, "scheduler", leader.Config{}).Run(ctx, func(ctx context.Context) error {
		if term++; term == 2 {
			fmt.Println("leads again")
			return nil
		}
		if _, err := n.Operator().Want(ctx, berth.Target{Kind: keyspace.Lock, Name: "scheduler"}); err != nil {
			return err
		}
		untilWanted(ctx)
		return nil
	})
	fmt.Println(err)
	// Output:
	// finishes its work: it still leads
	// leads again
	// <nil>
}
