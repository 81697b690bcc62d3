package berthcron_test

import (
	"context"
	"fmt"
	"time"

	"github.com/robfig/cron/v3"

	berthcron "github.com/berth-go/berth/contrib/cron"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/once"
)

// Two replicas have the same job, and it runs once a day, in either.
func ExampleJob() {
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

	for range 2 { // each would be a process
		n, err := node.New(redis, node.Config{})
		if err != nil {
			panic(err)
		}
		defer func() { _ = n.Close(context.Background()) }()
		nightly, err := cron.ParseStandard("0 2 * * *")
		if err != nil {
			panic(err)
		}
		c := cron.New(cron.WithLocation(time.UTC))
		digest := once.New(n, "digest", berthcron.Around(nightly, c.Location()))
		id := c.Schedule(nightly, berthcron.Job(digest, cron.DefaultLogger, func(ctx context.Context, run *once.Run) error {
			fmt.Println("digest: attempt", run.Attempt())
			return ctx.Err()
		}))
		c.Start()
		defer func() { <-c.Stop().Done() }()

		c.Entry(id).WrappedJob.Run() // as if it were two o'clock
	}
	// Output:
	// digest: attempt 1
}

// A job that there is already is wrapped. What panics is caught outside.
func ExampleWrapper() {
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
	n, err := node.New(redis, node.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = n.Close(context.Background()) }()

	logger := cron.DefaultLogger
	for range 2 { // each would be a process
		daily := berthcron.Wrapper(once.New(n, "digest", once.Daily("02:00", "")), logger)
		chain := cron.NewChain(cron.Recover(logger), daily)
		chain.Then(cron.FuncJob(func() { fmt.Println("digest") })).Run()
	}
	// Output:
	// digest
}
