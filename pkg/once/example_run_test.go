package once_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/once"
)

// newNode starts a server inside this process and returns a node on it, as the example of Job.Do spells out.
func newNode(cfg node.Config) (ctx context.Context, n *node.Node, end func()) {
	server, err := embedded.Start()
	check(err)
	redis, err := server.Client()
	check(err)
	ctx = context.Background()
	n, err = node.New(redis, cfg)
	check(err)
	return ctx, n, func() { _ = n.Close(ctx); redis.Close(); server.Close() }
}

// check ends the example where something has failed.
func check(err error) {
	if err != nil {
		panic(err)
	}
}

// A replica that goes on asks in each period until its context ends.
func ExampleJob_Run() {
	ctx, n, end := newNode(node.Config{})
	defer end()

	// nightly begins a period each day at 03:00 UTC.
	nightly := once.Config{Every: 24 * time.Hour, Offset: 3 * time.Hour}
	ctx, stop := context.WithCancel(ctx)
	err := once.New(n, "digest", nightly).Run(ctx, func(context.Context, *once.Run) error {
		fmt.Println("sending")
		stop() // or by a signal
		return nil
	})
	fmt.Println(err)
	// Output:
	// sending
	// context canceled
}

// Where no function can be handed over, a run begins and ends by two calls.
func ExampleJob_Begin() {
	ctx, n, end := newNode(node.Config{})
	defer end()

	// One period each day, from midnight UTC.
	job := once.New(n, "digest", once.Config{Every: 24 * time.Hour})
	run, result, err := job.Begin(ctx)
	check(err)
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

// What failed may be tried again, by any process, while attempts are left.
func ExampleJob_Last() {
	ctx, n, end := newNode(node.Config{Label: "replica-1"})
	defer end()

	job := once.New(n, "print", once.Config{Every: 24 * time.Hour})
	_, err := job.Do(ctx, func(context.Context, *once.Run) error { return errors.New("no paper") })
	fmt.Println(err)
	last, err := job.Last(ctx)
	check(err)
	fmt.Printf("attempt %d by %s: %s, %s\n", last.Run.Attempt, last.Run.Label, last.Run.Outcome, last.Run.Error)
	fmt.Println("a success is known:", last.Success != nil)
	// Output:
	// no paper
	// attempt 1 by replica-1: failed, no paper
	// a success is known: false
}
