package leader_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/leader"
	"github.com/berth-go/berth/pkg/node"
)

// newNode starts a server inside this process and returns a node on it, as the example of Election.Run spells out.
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

// An operator asks for leadership back. The function still leads until it returns; then the next in line leads, or
// again this process if nobody else stands.
func ExampleErrWanted() {
	ctx, n, end := newNode(node.Config{})
	defer end()

	term := 0
	err := leader.New(n, "scheduler", nil).Run(ctx, func(ctx context.Context) error {
		if term++; term == 2 {
			fmt.Println("leads again")
			return nil
		}
		if _, err := n.Operator().Want(ctx, berth.Target{Kind: keyspace.Lock, Name: "scheduler"}); err != nil {
			return err
		}
		<-ctx.Done() // it works until its context ends, and says why that was
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
func ExampleElection_Watch() {
	ctx, n, end := newNode(node.Config{Label: "host-1"})
	defer end()
	scheduler := leader.New(n, "scheduler", &leader.Config{Meta: map[string]string{"zone": "b"}})

	seen, over := make(chan struct{}), make(chan error)
	for now, err := range scheduler.Watch(ctx) {
		if err != nil {
			fmt.Println("not known:", err)
			continue
		}
		if now != nil {
			fmt.Println(now.Label, "leads in zone", now.Meta["zone"])
			break
		}
		fmt.Println("nobody leads")
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
