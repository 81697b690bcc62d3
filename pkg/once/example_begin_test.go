package once_test

import (
	"context"
	"fmt"
	"time"

	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/once"
)

// daily is one period each day, from midnight UTC.
var daily = once.Config{Every: 24 * time.Hour}

// Where no function can be handed over, a run begins and ends by two calls.
func ExampleJob_Begin() {
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
	ctx := context.Background()
	n, err := node.New(redis, node.Config{})
	if err != nil {
		panic(err)
	}
	defer n.Close(ctx)

	job := once.New(n, "digest", daily)
	run, result, err := job.Begin(ctx)
	if err != nil {
		panic(err)
	}
	if run == nil {
		fmt.Println("nothing to do:", result.Status)
		return
	}
	fmt.Println("under a hold:", run.Context().Err() == nil)
	fmt.Println("kept:", run.End(ctx, nil) == nil)
	// Output:
	// under a hold: true
	// kept: true
}
