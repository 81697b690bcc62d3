package app

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/once"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

// closing bounds how long a command cleans up behind itself.
const closing = 5 * time.Second

// Times bound what a command waits for. Tests, which no pause of a busy machine is to
// fail, set longer ones.
var Times = struct {
	Call     time.Duration // how long a call is repeated, and an attempt may take, 0 for the defaults of the library
	Complete time.Duration // after how long a completion gives up: whoever pressed a key waits for it
	Look     time.Duration // how long a claim that got nothing looks who is in its way
	Demo     time.Duration // how long a demo may last, which takes a quarter of that where the machine is calm
}{Complete: time.Second, Look: 2 * time.Second, Demo: time.Minute}

// Connection is a server, and what a command has on it.
type Connection struct {
	Address   string
	Namespace string
	Redis     rueidis.Client
	clients   []client // newest last
}

// client is one of a primitive.
type client interface {
	Close(ctx context.Context) error
}

// connect reaches the server within ctx. The caller closes the connection. What
// is wrong with the URL or the namespace is an error of usage; all others have
// the exit code for a server that cannot be reached.
func (a *App) connect(ctx context.Context) (*Connection, error) {
	if err := keyspace.CheckNamespace(a.Namespace); err != nil {
		return nil, InFlags(err, "Namespace", a.source("namespace", namespaceVariable))
	}
	option, err := a.option()
	if err != nil {
		return nil, err
	}
	address := strings.Join(option.InitAddress, ", ")
	redis, err := dial(ctx, option)
	if err != nil {
		return nil, Unreachable(address, undialed(option, err))
	}
	return &Connection{Address: address, Namespace: a.Namespace, Redis: redis}, nil
}

// ConnectWithin is connect, which takes no longer than wait, unless that is 0.
func (a *App) ConnectWithin(ctx context.Context, wait time.Duration) (*Connection, error) {
	if wait == 0 {
		return a.connect(ctx)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, wait, fmt.Errorf("not connected within --wait %s", wait))
	defer cancel()
	return a.connect(ctx)
}

// Sems returns the semaphores of the namespace. They end with the connection.
func (c *Connection) Sems(cfg semaphore.Config) (*semaphore.Client, error) {
	cfg.Namespace, cfg.CallTimeout, cfg.Retry.Within = c.Namespace, Times.Call, Times.Call
	sems, err := semaphore.New(c.Redis, cfg)
	if err == nil {
		c.clients = append(c.clients, sems)
	}
	return sems, err
}

// Locks returns the locks of the namespace. They end with the connection.
func (c *Connection) Locks(cfg qlock.Config) (*qlock.Client, error) {
	cfg.Namespace, cfg.CallTimeout, cfg.Retry.Within = c.Namespace, Times.Call, Times.Call
	locks, err := qlock.New(c.Redis, cfg)
	if err == nil {
		c.clients = append(c.clients, locks)
	}
	return locks, err
}

// Jobs makes a client of what is done once in each period. It is closed with the connection.
func (c *Connection) Jobs(cfg qlock.Config) (*once.Client, error) {
	cfg.Namespace, cfg.CallTimeout, cfg.Retry.Within = c.Namespace, Times.Call, Times.Call
	jobs, err := once.New(c.Redis, cfg)
	if err == nil {
		c.clients = append(c.clients, jobs)
	}
	return jobs, err
}

// Settle gives back what is held, and waits until nothing of a claim is left on
// the way.
func (c *Connection) Settle(ctx context.Context) {
	for _, client := range slices.Backward(c.clients) {
		_ = client.Close(ctx) // whoever holds something has released it and looked
	}
	if ctx.Err() == nil { // else there may be something left
		c.clients = nil
	}
}

// Close settles, and ends the connection.
func (c *Connection) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	c.CloseWithin(ctx)
}

// CloseWithin is Close, which a server that does not answer can delay, until ctx
// ends.
func (c *Connection) CloseWithin(ctx context.Context) {
	_ = UnlessOver(ctx, func() error {
		c.Settle(ctx)
		c.Redis.Close()
		return nil
	})
}

// UnlessOver returns what f does, or why ctx has ended if that comes first: f is
// then left behind for the end of the program.
func UnlessOver(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// WithServer connects, and calls f. What f returns is the server's error, unless
// it has an exit code of its own.
func (a *App) WithServer(ctx context.Context, f func(context.Context, *Connection) error) error {
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	err = f(ctx, c)
	if err == nil || decided(err) {
		return err
	}
	return Unreachable(c.Address, err)
}

// WithNode connects, and calls f with a node.
func (a *App) WithNode(ctx context.Context, f func(context.Context, *node.Node) error) error {
	return a.WithServer(ctx, func(ctx context.Context, c *Connection) error {
		n, err := node.New(c.Redis, node.Config{Namespace: c.Namespace, CallTimeout: Times.Call, Retry: berth.Retry{Within: Times.Call}})
		if err != nil {
			return err
		}
		c.clients = append(c.clients, n)
		return f(ctx, n)
	})
}

// WithSems connects, and calls f with a client for semaphores.
func (a *App) WithSems(ctx context.Context, cfg semaphore.Config, f func(context.Context, *semaphore.Client) error) error {
	return a.WithServer(ctx, func(ctx context.Context, c *Connection) error {
		sems, err := c.Sems(cfg)
		if err != nil {
			return err
		}
		return f(ctx, sems)
	})
}

// WithLocks connects, and calls f with a client for locks.
func (a *App) WithLocks(ctx context.Context, cfg qlock.Config, f func(context.Context, *qlock.Client) error) error {
	return a.WithServer(ctx, func(ctx context.Context, c *Connection) error {
		locks, err := c.Locks(cfg)
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

// Pools returns the pools of the namespace. They end with the connection.
func (c *Connection) Pools(cfg allocator.Config) (*allocator.Client, error) {
	cfg.Namespace, cfg.CallTimeout, cfg.Retry.Within = c.Namespace, Times.Call, Times.Call
	pools, err := allocator.New(c.Redis, cfg)
	if err == nil {
		c.clients = append(c.clients, pools)
	}
	return pools, err
}

// WithPools connects, and calls f with a client for pools.
func (a *App) WithPools(ctx context.Context, f func(context.Context, *allocator.Client) error) error {
	return a.WithServer(ctx, func(ctx context.Context, c *Connection) error {
		pools, err := c.Pools(allocator.Config{})
		if err != nil {
			return err
		}
		return f(ctx, pools)
	})
}

// WithPool connects, and calls f with one pool. The values are the keys.
func (a *App) WithPool(ctx context.Context, name string, f func(context.Context, *allocator.Pool[string]) error) error {
	if err := CheckName(name); err != nil {
		return err
	}
	return a.WithPools(ctx, func(ctx context.Context, pools *allocator.Client) error {
		pool, err := allocator.NewPool(pools, name, allocator.PoolConfig[string]{})
		if err != nil {
			return err
		}
		return f(ctx, pool)
	})
}

// Reader reads the namespace.
func (c *Connection) Reader() (*inspect.Reader, error) {
	return inspect.New(c.Redis, inspect.Config{Namespace: c.Namespace, CallTimeout: Times.Call, Retry: berth.Retry{Within: Times.Call}})
}

// WithReader connects, and calls f with what reads names of all kinds.
func (a *App) WithReader(ctx context.Context, f func(context.Context, *inspect.Reader) error) error {
	return a.WithServer(ctx, func(ctx context.Context, c *Connection) error {
		read, err := c.Reader()
		if err != nil {
			return err
		}
		return f(ctx, read)
	})
}
