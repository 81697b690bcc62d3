package berthtest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/berthtest"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

// testNightlyJob would be TestNightlyJob in your own tests: the node renews the lock for an hour.
func testNightlyJob(t *testing.T) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		locks := qlock.New(berthtest.Node(t), nil)
		err := locks.Do(context.Background(), "nightly", nil, func(ctx context.Context) error {
			time.Sleep(61 * time.Minute) // takes no time
			return ctx.Err()
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

func ExampleNode() {
	// A node belongs to a test, and so this example is one: see testNightlyJob.
	_ = testNightlyJob
}

// testSessionEnds would be TestSessionEnds in your own tests.
func testSessionEnds(t *testing.T) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		redis := berthtest.Redis(t)
		ctx := context.Background()
		set := redis.B().Set().Key("session").Value("alice").Ex(61 * time.Minute).Build()
		if err := redis.Do(ctx, set).Error(); err != nil {
			t.Fatal(err)
		}
		get := redis.B().Get().Key("session").Build().Pin() // sent twice

		time.Sleep(61*time.Minute - time.Millisecond) // takes no time
		if who, err := redis.Do(ctx, get).ToString(); err != nil || who != "alice" {
			t.Fatalf("a millisecond before the end: %q, %v", who, err)
		}
		time.Sleep(time.Millisecond)
		if who, err := redis.Do(ctx, get).ToString(); err == nil {
			t.Fatalf("at the end: %q", who)
		}
	})
}

func ExampleRedis() {
	// A Redis belongs to a test, and so this example is one: see testSessionEnds.
	_ = testSessionEnds
}

// testOneOfTwoIsLost would be TestOneOfTwoIsLost in your own tests.
func testOneOfTwoIsLost(t *testing.T) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server, ctx := berthtest.New(t), context.Background()
		gpus := semaphore.New(server.Node(node.Config{}), "gpu", 2, nil)
		lost, _ := gpus.Acquire(ctx, nil)
		kept, _ := gpus.Acquire(ctx, nil)
		server.Lose(lost)
		if !errors.Is(lost.Err(), berth.ErrLost) || kept.Err() != nil {
			t.Fatal(lost.Err(), kept.Err())
		}
	})
}

func ExampleServer_Lose() {
	// A server belongs to a test, and so this example is one: see testOneOfTwoIsLost.
	_ = testOneOfTwoIsLost
}

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
		locks := qlock.New(server.Node(node.Config{}), nil)
		go func() { stopped <- export(context.Background(), locks) }()
		synctest.Wait() // it works
		server.LoseAll("export")
		if err := <-stopped; !errors.Is(err, berth.ErrLost) {
			t.Fatal(err)
		}
	})
}

func ExampleServer_LoseAll() {
	// A server belongs to a test, and so this example is one: see testWorkerStops.
	_ = testWorkerStops
}

// testOutage would be TestOutage in your own tests. An outage of up to two fifths of the
// lease loses no hold, whenever it begins. A longer one may end a hold, before anybody
// else can get it: 10 s after its last renewal, less a margin of 102 ms.
func testOutage(t *testing.T) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server, ctx := berthtest.New(t), context.Background()
		gpu := semaphore.New(server.Node(node.Config{Lease: 10 * time.Second}), "gpu", 1, nil)
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

// testHang would be TestHang in your own tests: the server hangs for less than the lease, so that the
// renewal is late, and in time.
func testHang(t *testing.T) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server, ctx := berthtest.New(t), context.Background()
		locks := qlock.New(server.Node(node.Config{}), &qlock.Config{Lease: 10 * time.Second})
		lock, _ := locks.Lock(ctx, "order:7", nil)
		server.Hang(5 * time.Second)
		time.Sleep(time.Minute)
		if err := lock.Err(); err != nil {
			t.Fatal(err)
		}
	})
}

func ExampleServer_Hang() {
	// A server belongs to a test, and so this example is one: see testHang.
	_ = testHang
}

// testFailover would be TestFailover in your own tests: the new server has never
// heard of the lock, whose holder learns of that, and whose fences rise all the same.
func testFailover(t *testing.T) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server, ctx := berthtest.New(t), context.Background()
		locks := qlock.New(server.Node(node.Config{}), nil)
		before := server.Snapshot()
		lost, _ := locks.Lock(ctx, "order:7", nil)
		server.Failover(before)
		<-lost.Done() // within a third of its lease
		again, err := locks.Lock(ctx, "order:7", nil)
		if err != nil || !errors.Is(lost.Err(), berth.ErrLost) || again.Fence() <= lost.Fence() {
			t.Fatal(err, lost.Err())
		}
	})
}

func ExampleServer_Failover() {
	// A server belongs to a test, and so this example is one: see testFailover.
	_ = testFailover
}

// testLateReplies would be TestLateReplies in your own tests.
func testLateReplies(t *testing.T) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server, ctx := berthtest.New(t), context.Background()
		proxies := allocator.New(server.Node(node.Config{}), "proxies", allocator.PoolConfig[string]{})
		_, _ = proxies.Add(ctx, []string{"10.0.0.1:3128"}, nil)
		server.DelayReplies(500 * time.Millisecond)
		began := time.Now()
		proxy, err := proxies.Allocate(ctx, nil)
		if took := time.Since(began); err != nil || took != 500*time.Millisecond || proxy.Waited() != took {
			t.Fatal(took, err)
		}
	})
}

func ExampleServer_DelayReplies() {
	// A server belongs to a test, and so this example is one: see testLateReplies.
	_ = testLateReplies
}

// testDroppedReply would be TestDroppedReply in your own tests: the call is sent
// again, and has allocated once.
func testDroppedReply(t *testing.T) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server, ctx := berthtest.New(t), context.Background()
		proxies := allocator.New(server.Node(node.Config{}), "proxies", allocator.PoolConfig[string]{})
		_, _ = proxies.Add(ctx, []string{"10.0.0.1:3128", "10.0.0.2:3128"}, nil)
		server.DropReplies(2)
		_, first := proxies.TryAllocate(ctx, nil)
		_, second := proxies.TryAllocate(ctx, nil)
		_, third := proxies.TryAllocate(ctx, nil)
		if first != nil || second != nil || !errors.Is(third, berth.ErrBusy) {
			t.Fatal(first, second, third)
		}
	})
}

func ExampleServer_DropReplies() {
	// A server belongs to a test, and so this example is one: see testDroppedReply.
	_ = testDroppedReply
}
