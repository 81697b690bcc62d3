package berthtest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/berthtest"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
)

// export is your program: it works while it has the lock, and stops when it has not.
func export(ctx context.Context, locks *qlock.Locks) error {
	return locks.Do(ctx, "export", nil, func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	})
}

// testWorkerStops would be TestWorkerStops in your own tests.
func testWorkerStops(t *testing.T) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server, stopped := berthtest.New(t), make(chan error)
		locks := qlock.New(server.Node(node.Config{}), qlock.Config{})
		go func() { stopped <- export(context.Background(), locks) }()
		synctest.Wait() // it works
		server.LoseAll("export")
		if err := <-stopped; !errors.Is(err, berth.ErrLost) {
			t.Fatal(err)
		}
	})
}

func ExampleServer_LoseAll() {
	// A server belongs to a test, and so this example is one: see
	// testWorkerStops.
	_ = testWorkerStops
}
