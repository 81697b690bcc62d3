package leader_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/leader"
	"github.com/berth-go/berth/pkg/qlock"
)

// Three processes stand for election. Each leads for a while, and resigns; the next one leads at once, with a
// greater fence.
func ExampleClient_Run() {
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
	leaders, err := leader.New(redis, qlock.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = leaders.Close(ctx) }()

	last := int64(0)
	for _, process := range []string{"a", "b", "c"} {
		err := leaders.Run(ctx, "scheduler", nil, func(ctx context.Context) error {
			fence := leaders.Fence(ctx, "scheduler") // for all that this leader writes
			fmt.Println(process, "leads, with a greater fence:", fence > last)
			last = fence
			return nil // it resigns
		})
		fmt.Println(err)
	}
	// Output:
	// a leads, with a greater fence: true
	// <nil>
	// b leads, with a greater fence: true
	// <nil>
	// c leads, with a greater fence: true
	// <nil>
}

// An operator asks for leadership back. The function still leads until it returns; then the next in line leads, or
// again this process if nobody else stands.
func ExampleErrWanted() {
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
	leaders, err := leader.New(redis, qlock.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = leaders.Close(ctx) }()
	operator, err := qlock.New(redis, qlock.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = operator.Close(ctx) }()

	term := 0
	err = leaders.Run(ctx, "scheduler", nil, func(ctx context.Context) error {
		if term++; term == 2 {
			fmt.Println("leads again")
			return nil
		}
		if _, err := operator.Operator().Want(ctx, berth.Target{Name: "scheduler"}); err != nil {
			return err
		}
		<-ctx.Done()
		if errors.Is(context.Cause(ctx), leader.ErrWanted) {
			fmt.Println("finishes its work: it still leads")
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// finishes its work: it still leads
	// leads again
	// <nil>
}

// Any process can ask who leads.
func ExampleClient_Watch() {
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
	leaders, err := leader.New(redis, qlock.Config{Label: "host-1", Lease: 500 * time.Millisecond})
	if err != nil {
		panic(err)
	}
	defer func() { _ = leaders.Close(ctx) }()

	seen, over := make(chan struct{}), make(chan error)
	for now, err := range leaders.Watch(ctx, "scheduler") {
		switch {
		case err != nil:
			fmt.Println("not known:", err)
		case now == nil:
			fmt.Println("nobody leads")
			go func() {
				over <- leaders.Run(ctx, "scheduler", &leader.Options{Meta: map[string]string{"zone": "b"}}, func(context.Context) error {
					<-seen // the work
					return nil
				})
			}()
			continue
		default:
			fmt.Println(now.Label, "leads in zone", now.Meta["zone"])
		}
		break
	}
	close(seen)
	fmt.Println(<-over)
	// Output:
	// nobody leads
	// host-1 leads in zone b
	// <nil>
}
