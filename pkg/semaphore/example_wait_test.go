package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

// enter waits for three seconds at the most, and tells apart the ways in which a wait ends.
func enter(ctx context.Context, s *semaphore.Semaphore) {
	permit, err := s.Acquire(ctx, &semaphore.AcquireOptions{MaxWait: 3 * time.Second})
	switch {
	case err == nil:
		fmt.Println("acquired:", permit.Release(ctx))
	case ctx.Err() != nil:
		fmt.Println("left:", context.Cause(ctx))
	case errors.Is(err, berth.ErrBusy):
		fmt.Println("others were in the way for too long")
	default:
		fmt.Println("not acquired:", err)
	}
}

// MaxWait and the end of the caller's context bound a wait.
func ExampleSemaphore_Acquire_wait() {
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
	ctx := context.Background()
	n, err := node.New(redis, node.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = n.Close(ctx) }()
	printer := semaphore.New(n, "printer", 1, semaphore.Config{})
	if _, err := printer.Acquire(ctx, nil); err != nil {
		panic(err)
	}

	enter(ctx, printer)
	leaving, cancel := context.WithCancelCause(ctx)
	cancel(errors.New("the service shuts down"))
	enter(leaving, printer)
	// Output:
	// others were in the way for too long
	// left: the service shuts down
}
