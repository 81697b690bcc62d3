package berthgocron_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	berthgocron "github.com/berth-go/berth/contrib/gocron"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/once"
)

// Three replicas have the same job, and it runs once.
func ExampleNewLocker() {
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

	told := make(chan string)
	for range 3 { // each would be a process
		n, err := node.New(redis, node.Config{})
		if err != nil {
			panic(err)
		}
		defer func() { _ = n.Close(context.Background()) }()
		locker := berthgocron.NewLocker(n, once.Config{})
		s, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
		if err != nil {
			panic(err)
		}
		defer func() { _ = s.Shutdown() }()
		locker.Watch(s)
		skipped := func(_ uuid.UUID, name string, err error) {
			if errors.Is(err, berthgocron.ErrSkipped) {
				told <- name + " is skipped"
			}
		}
		_, err = s.NewJob(
			gocron.DurationJob(365*24*time.Hour),
			gocron.NewTask(func() { told <- "digest runs" }),
			gocron.WithName("digest"),
			gocron.WithStartAt(gocron.WithStartImmediately()), // for the example
			gocron.WithEventListeners(gocron.AfterJobRunsWithError(locker.Failed), gocron.AfterLockError(skipped)),
		)
		if err != nil {
			panic(err)
		}
		s.Start()
	}
	for range 3 {
		fmt.Println(<-told)
	}
	// Unordered output:
	// digest runs
	// digest is skipped
	// digest is skipped
}
