package leader_test

import (
	"context"
	"fmt"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/leader"
	"github.com/berth-go/berth/pkg/node"
)

// show prints who leads.
func show(now *berth.Holder) {
	if now == nil {
		fmt.Println("nobody leads")
		return
	}
	fmt.Println(now.Label, "leads in zone", now.Meta["zone"])
}

// Any process can ask who leads.
func ExampleElection_Watch() {
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
	n, err := node.New(redis, node.Config{Label: "host-1"})
	if err != nil {
		panic(err)
	}
	defer func() { _ = n.Close(ctx) }()
	scheduler := leader.New(n, "scheduler", leader.Config{Meta: map[string]string{"zone": "b"}})

	seen, over := make(chan struct{}), make(chan error)
	for now, err := range scheduler.Watch(ctx) {
		if err != nil {
			fmt.Println("not known:", err)
			continue
		}
		show(now)
		if now != nil {
			break
		}
		go func() {
			over <- scheduler.Run(ctx, func(ctx context.Context) error {
				select {
				case <-seen: // the work is done
				case <-ctx.Done(): // it leads no more
				}
				return nil
			})
		}()
	}
	close(seen)
	fmt.Println(<-over)
	// Output:
	// nobody leads
	// host-1 leads in zone b
	// <nil>
}
