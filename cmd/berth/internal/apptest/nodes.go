package apptest

import (
	"cmp"
	"context"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/internal/wire"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

// connected returns a connection to the server that ends with the test.
func connected(t *testing.T, s *embedded.Server, changes ...func(*rueidis.ClientOption)) rueidis.Client {
	t.Helper()
	redis, err := s.Client(append(changes, Patiently)...)
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	return redis
}

// NodeOf returns a node of its own on the server. Some tests close the server before it.
func NodeOf(t *testing.T, s *embedded.Server, cfg node.Config, changes ...func(*rueidis.ClientOption)) *node.Node {
	t.Helper()
	cfg.Lease, cfg.CallTimeout, cfg.Retry.Within = cmp.Or(cfg.Lease, longLease), Patience, Patience
	n, err := node.New(connected(t, s, changes...), cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), Patience)
		defer cancel()
		_ = n.Close(ctx)
	})
	return n
}

// OpsOf returns the operator's calls of a node of its own.
func OpsOf(t *testing.T, s *embedded.Server) *node.Operator {
	t.Helper()
	return NodeOf(t, s, node.Config{}).Operator()
}

// SemOf returns a semaphore on a node of its own.
func SemOf(t *testing.T, s *embedded.Server, name string, capacity int) *semaphore.Semaphore {
	t.Helper()
	return semaphore.New(NodeOf(t, s, node.Config{}), name, capacity, semaphore.Config{})
}

// Locks are the locks of a node of their own.
type Locks struct {
	*node.Node
	*qlock.Locks
}

// LocksOf returns locks whose lease is the node's.
func LocksOf(t *testing.T, s *embedded.Server, cfg node.Config, changes ...func(*rueidis.ClientOption)) Locks {
	t.Helper()
	n := NodeOf(t, s, cfg, changes...)
	return Locks{n, qlock.New(n, qlock.Config{Lease: cmp.Or(cfg.Lease, longLease)})}
}

// looking calls f with what reads the server.
func looking(t *testing.T, s *embedded.Server, f func(ctx context.Context, read *inspect.Reader) error) {
	t.Helper()
	redis, err := s.Client(Patiently)
	require.NoError(t, err)
	defer redis.Close()
	read, err := inspect.New(redis, inspect.Config{CallTimeout: Patience, Retry: berth.Retry{Within: Patience}})
	require.NoError(t, err)
	require.NoError(t, f(context.Background(), read))
}

// NameOf is a name as it is now.
func NameOf(t *testing.T, s *embedded.Server, kind keyspace.Kind, name string) (n berth.Name) {
	t.Helper()
	looking(t, s, func(ctx context.Context, read *inspect.Reader) (err error) {
		n, err = read.Name(ctx, kind, name)
		return err
	})
	return n
}

// HoldersOf are those that hold a name.
func HoldersOf(t *testing.T, s *embedded.Server, kind keyspace.Kind, name string) (all []berth.Holder) {
	t.Helper()
	looking(t, s, func(ctx context.Context, read *inspect.Reader) error {
		page, err := app.AllHolders(ctx, read, kind, name)
		all = page.Items
		return err
	})
	return all
}

// WaitersOf are those that wait for a name.
func WaitersOf(t *testing.T, s *embedded.Server, kind keyspace.Kind, name string) (all []berth.Waiter) {
	t.Helper()
	looking(t, s, func(ctx context.Context, read *inspect.Reader) error {
		page, err := app.AllWaiters(ctx, read, kind, name)
		all = page.Items
		return err
	})
	return all
}

// Waiting is how many wait for a name.
func Waiting(t *testing.T, s *embedded.Server, kind keyspace.Kind, name string) int {
	t.Helper()
	return NameOf(t, s, kind, name).Waiting
}

// Drain runs a drain of processes on a link, which learn of the drain only by its requests. Otherwise a process
// that reads the notice in between gives back by itself, and the drain counts nothing.
func Drain(t *testing.T, s *embedded.Server, processes *link.Link, asked func() bool, args ...string) Result {
	t.Helper()
	drained := make(chan Result, 1)
	processes.Stall()
	go func() { drained <- Call(t, s.URL(), args...) }()
	require.Eventually(t, asked, Patience, 10*time.Millisecond)
	processes.Flow()
	return <-drained
}

// Pool is a pool on a node of its own, and the operator of that.
type Pool struct {
	*allocator.Pool[string]
	Ops    *allocator.Operator
	Server *embedded.Server
}

// PoolOf returns a pool on a node of its own.
func PoolOf(t *testing.T, s *embedded.Server, name string, cfg node.Config) Pool {
	t.Helper()
	n := NodeOf(t, s, cfg)
	return Pool{allocator.New(n, name, allocator.Config[string]{}), allocator.NewOperator(n), s}
}

// Filled returns a pool with resources.
func Filled(t *testing.T, s *embedded.Server, name string, resources ...string) Pool {
	t.Helper()
	pool := PoolOf(t, s, name, node.Config{Label: "host/one/1"})
	_, err := pool.Add(context.Background(), resources, nil)
	require.NoError(t, err)
	return pool
}

// Owned is a context whose calls are for an owner.
func Owned(owner string) context.Context { return berth.WithOwner(context.Background(), owner) }

// Ends requires that somebody else has ended a hold. It asks, because a process that did not
// have to wait is not subscribed, and would learn of the request a third of the lease later.
func Ends(t *testing.T, h berth.Hold) {
	t.Helper()
	_ = h.Renew(context.Background()) // what the hold's end is counts
	select {
	case <-h.Done():
	case <-time.After(Patience):
	}
	require.ErrorIs(t, h.Err(), berth.ErrReleased)
}

// WaitingFor returns the id of the first that waits for a name.
func WaitingFor(t *testing.T, s *embedded.Server, kind keyspace.Kind, name string) (id string) {
	t.Helper()
	require.Eventually(t, func() bool {
		all := WaitersOf(t, s, kind, name)
		if len(all) == 0 {
			return false
		}
		id = all[0].ID
		return true
	}, Patience, 10*time.Millisecond)
	return id
}

// Got is what a call has returned, which has not failed: Got(call())(t).
func Got[T any](got T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		require.NoError(t, err)
		return got
	}
}

// Read is a document that a command has printed.
func Read[T any](t *testing.T, text string) (document T) {
	t.Helper()
	require.NoError(t, wire.Unmarshal([]byte(text), &document))
	return document
}
