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

var errNoPaper = errors.New("no paper")

// What failed may be tried again, by any process, while attempts are left.
func ExampleJob_Last() {
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
	n, err := node.New(redis, node.Config{Label: "replica-1"})
	if err != nil {
		panic(err)
	}
	defer n.Close(ctx)

	job := once.New(n, "print", once.Config{Every: 24 * time.Hour})
	_, err = job.Do(ctx, func(context.Context, *once.Run) error { return errNoPaper })
	fmt.Println(err)
	last, err := job.Last(ctx)
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
