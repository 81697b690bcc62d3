package once_test

import (
	"context"
	"fmt"
	"time"

	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/once"
)

// nightly begins a period each day at 03:00 UTC.
var nightly = once.Config{Every: 24 * time.Hour, Offset: 3 * time.Hour}

// A replica that goes on asks in each period until its context ends.
func ExampleJob_Run() {
	server, err := embedded.Start() // use your Redis
	if err != nil {
		panic(err)
	}
	defer server.Close()
	redis, err := server.Client()
	if err != nil {
		panic(err)
	}
	defer redis.Close()
	n, err := node.New(redis, node.Config{})
	if err != nil {
		panic(err)
	}
	defer n.Close(context.Background())

	ctx, stop := context.WithCancel(context.Background())
	err = once.New(n, "digest", nightly).Run(ctx, func(context.Context, *once.Run) error {
		fmt.Println("sending")
		stop() // or by a signal
		return nil
	})
	fmt.Println(err)
	// Output:
	// sending
	// context canceled
}
