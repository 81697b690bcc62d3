package berthgocron_test

import (
	"context"
	"fmt"
	"time"

	"github.com/go-co-op/gocron/v2"

	berthgocron "github.com/berth-go/berth/contrib/gocron"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/leader"
	"github.com/berth-go/berth/pkg/node"
)

// One replica leads, and runs all jobs of the scheduler.
func ExampleNewElector() {
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

	elector := berthgocron.NewElector(n, "scheduler", leader.Config{})
	ctx, leave := context.WithCancel(context.Background())
	left := make(chan error)
	go func() { left <- elector.Run(ctx) }()

	s, err := gocron.NewScheduler(gocron.WithDistributedElector(elector))
	if err != nil {
		panic(err)
	}
	ran := make(chan string, 1)
	_, err = s.NewJob(gocron.DurationJob(10*time.Millisecond), gocron.NewTask(func() {
		select {
		case ran <- "the leader runs it":
		default:
		}
	}))
	if err != nil {
		panic(err)
	}
	s.Start()
	fmt.Println(<-ran)

	_ = s.Shutdown() // first the jobs end, then the next replica leads
	leave()
	fmt.Println(<-left)
	// Output:
	// the leader runs it
	// context canceled
}
