package once_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/once"
	"github.com/berth-go/berth/pkg/qlock"
)

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

	daily := once.Options{Every: 24 * time.Hour}
	for range 2 {
		result, err := jobs.Do(ctx, "digest", daily, func(_ context.Context, run *once.Run) error {
			fmt.Println("sending, attempt", run.Attempt())
			return nil
		})
		fmt.Println(result.Status, err)
	}
	// Output:
	// sending, attempt 1
	// ran <nil>
	// done <nil>
}

// What failed may be tried again, by any process, while attempts are left.
func ExampleClient_Last() {
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
	jobs, err := once.New(redis, qlock.Config{Label: "replica-1"})
	if err != nil {
		panic(err)
	}
	defer jobs.Close(ctx)

	noPaper := errors.New("no paper")
	_, err = jobs.Do(ctx, "print", once.Options{Every: 24 * time.Hour}, func(context.Context, *once.Run) error { return noPaper })
	fmt.Println(err)
	last, err := jobs.Last(ctx, "print")
	if err != nil {
		panic(err)
	}
	fmt.Printf("attempt %d by %s: %s, %s\n", last.Run.Attempt, last.Run.Label, last.Run.Outcome, last.Run.Error)
	fmt.Println("a success is known:", last.Success != nil)
	// Output:
	// no paper
	// attempt 1 by replica-1: failed, no paper
	// a success is known: false
}

// Where no function can be handed over, a run begins and ends by two calls.
func ExampleClient_Begin() {
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

	run, result, err := jobs.Begin(ctx, "digest", once.Options{Every: 24 * time.Hour})
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
	err = jobs.Run(ctx, "digest", once.Options{Every: 24 * time.Hour}, func(context.Context, *once.Run) error {
		fmt.Println("sending")
		stop() // or by a signal
		return nil
	})
	fmt.Println(err)
	// Output:
	// sending
	// context canceled
}
