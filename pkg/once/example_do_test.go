package once_test

import (
	"context"
	"fmt"
	"time"

	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/once"
	"github.com/berth-go/berth/pkg/qlock"
)

// send is the job.
func send(_ context.Context, run *once.Run) error {
	fmt.Println("sending, attempt", run.Attempt())
	return nil
}

// Two replicas ask for the same day. One sends the digest.
func ExampleClient_Do() {
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
	jobs, err := once.New(redis, qlock.Config{})
	if err != nil {
		panic(err)
	}
	defer jobs.Close(ctx)

	for range 2 {
		result, err := jobs.Do(ctx, "digest", once.Options{Every: 24 * time.Hour}, send)
		fmt.Println(result.Status, err)
	}
	// Output:
	// sending, attempt 1
	// ran <nil>
	// done <nil>
}
