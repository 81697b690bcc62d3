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

// convert works until it is done or its context ends.
func convert(ctx context.Context, work time.Duration) error {
	select {
	case <-time.After(work):
		fmt.Println("converted")
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Do runs a function under a permit. The context of the function ends with the
// caller's context or with the permit, whichever comes first.
func ExampleSemaphore_Do() {
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
	videos := semaphore.New(n, "videos", 2, semaphore.Config{})

	err = videos.Do(ctx, nil, func(ctx context.Context) error { return convert(ctx, time.Millisecond) })
	fmt.Println(err)

	// MaxHold bounds the work.
	opts := &semaphore.AcquireOptions{MaxHold: 2 * time.Second}
	err = videos.Do(ctx, opts, func(ctx context.Context) error { return convert(ctx, time.Hour) })
	fmt.Println(errors.Is(err, berth.ErrExpired))
	// Output:
	// converted
	// <nil>
	// true
}
