package once_test

import (
	"context"
	"fmt"
	"time"

	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/once"
)

// send is the job.
func send(_ context.Context, run *once.Run) error {
	fmt.Println("sending, attempt", run.Attempt())
	return nil
}

// Two replicas ask for the same day. One sends the digest.
func ExampleJob_Do() {
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

	job := once.New(n, "digest", once.Config{Every: 24 * time.Hour})
	for range 2 { // each would be a process
		result, err := job.Do(ctx, send)
		fmt.Println(result.Status, err)
	}
	// Output:
	// sending, attempt 1
	// ran <nil>
	// done <nil>
}
