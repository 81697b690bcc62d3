package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

// closing bounds how long a command cleans up behind itself.
const closing = 5 * time.Second

// times bound what a command waits for. Tests, which no pause of a busy machine is to
// fail, set longer ones.
var times = struct {
	call     time.Duration // how long a call is repeated, 0 for the default of the library
	complete time.Duration // after how long a completion gives up: whoever pressed a key waits for it
	look     time.Duration // how long a claim that got nothing looks who is in its way
}{complete: time.Second, look: 2 * time.Second}

// connection is a server, and what a command has on it.
type connection struct {
	address   string
	namespace string
	redis     rueidis.Client
	clients   []client // newest last
}

// client is one of a primitive.
type client interface {
	Close(ctx context.Context) error
}

// connect reaches the server within ctx. The caller closes the connection. What
// is wrong with the URL or the namespace is an error of usage; all others have
// the exit code for a server that cannot be reached.
func (a *app) connect(ctx context.Context) (*connection, error) {
	if err := keyspace.CheckNamespace(a.namespace); err != nil {
		return nil, inFlags(err, "Namespace", a.source("namespace", namespaceVariable))
	}
	option, err := a.option()
	if err != nil {
		return nil, err
	}
	address := strings.Join(option.InitAddress, ", ")
	redis, err := dial(ctx, option)
	if err != nil {
		return nil, unreachable(address, undialed(option, err))
	}
	return &connection{address: address, namespace: a.namespace, redis: redis}, nil
}

// connectWithin is connect, which takes no longer than wait, unless that is 0.
func (a *app) connectWithin(ctx context.Context, wait time.Duration) (*connection, error) {
	if wait == 0 {
		return a.connect(ctx)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, wait, fmt.Errorf("not connected within --wait %s", wait))
	defer cancel()
	return a.connect(ctx)
}

// sems returns the semaphores of the namespace. They end with the connection.
func (c *connection) sems(cfg semaphore.Config) (*semaphore.Client, error) {
	cfg.Namespace, cfg.CallTimeout = c.namespace, times.call
	sems, err := semaphore.New(c.redis, cfg)
	if err == nil {
		c.clients = append(c.clients, sems)
	}
	return sems, err
}

// locks returns the locks of the namespace. They end with the connection.
func (c *connection) locks(cfg qlock.Config) (*qlock.Client, error) {
	cfg.Namespace, cfg.CallTimeout = c.namespace, times.call
	locks, err := qlock.New(c.redis, cfg)
	if err == nil {
		c.clients = append(c.clients, locks)
	}
	return locks, err
}

// settle gives back what is held, and waits until nothing of a claim is left on
// the way.
func (c *connection) settle(ctx context.Context) {
	for _, client := range slices.Backward(c.clients) {
		_ = client.Close(ctx) // whoever holds something has released it and looked
	}
	if ctx.Err() == nil { // else there may be something left
		c.clients = nil
	}
}

// close settles, and ends the connection.
func (c *connection) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	c.closeWithin(ctx)
}

// closeWithin is close, which a server that does not answer can delay, until ctx
// ends.
func (c *connection) closeWithin(ctx context.Context) {
	_ = unlessOver(ctx, func() error {
		c.settle(ctx)
		c.redis.Close()
		return nil
	})
}

// unlessOver returns what f does, or why ctx has ended if that comes first: f is
// then left behind for the end of the program.
func unlessOver(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// withServer connects, and calls f. What f returns is the server's error, unless
// it has an exit code of its own.
func (a *app) withServer(ctx context.Context, f func(context.Context, *connection) error) error {
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	err = f(ctx, c)
	if err == nil || decided(err) {
		return err
	}
	return unreachable(c.address, err)
}

// withSems connects, and calls f with a client for semaphores.
func (a *app) withSems(ctx context.Context, cfg semaphore.Config, f func(context.Context, *semaphore.Client) error) error {
	return a.withServer(ctx, func(ctx context.Context, c *connection) error {
		sems, err := c.sems(cfg)
		if err != nil {
			return err
		}
		return f(ctx, sems)
	})
}

// withLocks connects, and calls f with a client for locks.
func (a *app) withLocks(ctx context.Context, cfg qlock.Config, f func(context.Context, *qlock.Client) error) error {
	return a.withServer(ctx, func(ctx context.Context, c *connection) error {
		locks, err := c.locks(cfg)
		if err != nil {
			return err
		}
		return f(ctx, locks)
	})
}

// dial is rueidis.NewClient, which knows no ctx: where ctx ends first, it is
// left behind for the end of the program.
func dial(ctx context.Context, option rueidis.ClientOption) (rueidis.Client, error) {
	type result struct {
		client rueidis.Client
		err    error
	}
	dialed := make(chan result, 1)
	go func() {
		client, err := rueidis.NewClient(option)
		dialed <- result{client, err}
	}()
	select {
	case r := <-dialed:
		return r.client, r.err
	case <-ctx.Done():
		go func() {
			if r := <-dialed; r.err == nil {
				r.client.Close()
			}
		}()
		return nil, context.Cause(ctx)
	}
}

// pools returns the pools of the namespace. They end with the connection.
func (c *connection) pools(cfg allocator.Config) (*allocator.Client, error) {
	cfg.Namespace, cfg.CallTimeout = c.namespace, times.call
	pools, err := allocator.New(c.redis, cfg)
	if err == nil {
		c.clients = append(c.clients, pools)
	}
	return pools, err
}

// withPools connects, and calls f with a client for pools.
func (a *app) withPools(ctx context.Context, f func(context.Context, *allocator.Client) error) error {
	return a.withServer(ctx, func(ctx context.Context, c *connection) error {
		pools, err := c.pools(allocator.Config{})
		if err != nil {
			return err
		}
		return f(ctx, pools)
	})
}

// withPool connects, and calls f with one pool. The values are the keys.
func (a *app) withPool(ctx context.Context, name string, f func(context.Context, *allocator.Pool[string]) error) error {
	if err := checkName(name); err != nil {
		return err
	}
	return a.withPools(ctx, func(ctx context.Context, pools *allocator.Client) error {
		pool, err := allocator.NewPool(pools, name, allocator.PoolConfig[string]{})
		if err != nil {
			return err
		}
		return f(ctx, pool)
	})
}
