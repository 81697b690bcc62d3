package berthtest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/berthtest"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

// testOutage would be TestOutage in your own tests. An outage of up to two fifths of the
// lease loses no hold, whenever it begins. A longer one may end a hold, before anybody
// else can get it: 10 s after its last renewal, less a margin of 102 ms.
func testOutage(t *testing.T) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server, ctx := berthtest.New(t), context.Background()
		gpu := semaphore.New(server.Node(node.Config{Lease: 10 * time.Second}), "gpu", 1, semaphore.Config{})
		server.Outage(5 * time.Second)
		permit, err := gpu.Acquire(ctx, nil) // waits for the server
		if permit == nil || permit.Waited() < 5*time.Second {
			t.Fatal(err)
		}
		granted := time.Now()
		server.Outage(time.Minute)
		<-permit.Done()
		if !errors.Is(permit.Err(), berth.ErrLost) || time.Since(granted) >= 10*time.Second {
			t.Fatal(permit.Err(), time.Since(granted))
		}
	})
}

func ExampleServer_Outage() {
	// A server belongs to a test, and so this example is one: see testOutage.
	_ = testOutage
}
