package once_test

import (
	"context"
	"fmt"
	"time"

	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/once"
	"github.com/berth-go/berth/pkg/qlock"
)

// nightly begins a period each day at 03:00 UTC.
var nightly = once.Options{Every: 24 * time.Hour, Offset: 3 * time.Hour}

// A replica that goes on asks in each period until its context ends.
func ExampleClient_Run() {
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
	jobs, err := once.New(redis, qlock.Config{})
	if err != nil {
		panic(err)
	}
	defer jobs.Close(context.Background())

	ctx, stop := context.WithCancel(context.Background())
	err = jobs.Run(ctx, "digest", nightly, func(context.Context, *once.Run) error {
		fmt.Println("sending")
		stop() // or by a signal
		return nil
	})
	fmt.Println(err)
	// Output:
	// sending
	// context canceled
}
