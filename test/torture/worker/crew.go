package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
	"github.com/berth-go/berth/test/torture/history"
)

// The primitives, as events name them.
const (
	sem  = "sem"
	lock = "lock"
	pool = "pool"
)

// options is how the server is reached.
func (w *worker) options() rueidis.ClientOption {
	r := w.job.Redis
	option := rueidis.ClientOption{
		InitAddress:       r.Addresses,
		Sentinel:          rueidis.SentinelOption{MasterSet: r.MasterSet},
		ForceSingleClient: !r.Cluster && r.MasterSet == "",
		DisableCache:      true,
		Username:          w.user(),
		Password:          r.Password,

		DialCtxFn: func(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			if through := w.job.Dial[addr]; through != "" {
				addr = through
			}
			return d.DialContext(ctx, "tcp", addr)
		},
	}
	link.Slim(&option)
	return option
}

// user is who shows the password.
func (w *worker) user() string {
	if w.job.Redis.Password == "" {
		return ""
	}
	return "default"
}

// clients are one client of each primitive.
type clients struct {
	sems  *semaphore.Client
	locks *qlock.Client
	pools *allocator.Client
	read  *inspect.Reader

	sem  map[string]*semaphore.Semaphore
	lock []string // the names
	pool map[string]*allocator.Pool[string]
}

// connectAll makes the clients. It does no I/O, so an error is one of this program.
func (w *worker) connectAll(o observe.Observer) (c clients) {
	lease := time.Duration(w.job.Lease) * time.Millisecond
	var errs [3]error
	c.sems, errs[0] = semaphore.New(w.redis, semaphore.Config{
		Namespace: w.job.Namespace, Label: w.job.Process, Lease: lease, Observer: o,
	})
	c.locks, errs[1] = qlock.New(w.redis, qlock.Config{
		Namespace: w.job.Namespace, Label: w.job.Process, Lease: lease, Observer: o,
	})
	c.pools, errs[2] = allocator.New(w.redis, allocator.Config{
		Namespace: w.job.Namespace, Label: w.job.Process, Lease: lease, Observer: o,
	})
	must(errors.Join(errs[:]...))
	var err error
	c.read, err = inspect.New(w.redis, inspect.Config{Namespace: w.job.Namespace})
	must(err)
	c.sem, c.pool = map[string]*semaphore.Semaphore{}, map[string]*allocator.Pool[string]{}
	for _, s := range w.job.Sems {
		var err error
		c.sem[s.Name], err = c.sems.Semaphore(s.Name, s.Capacity, nil)
		must(err)
	}
	for _, name := range w.job.Endless {
		c.lock = append(c.lock, name)
		c.sem[name], err = c.sems.Semaphore(name, 1, nil)
		must(err)
	}
	for _, l := range w.job.Locks {
		c.lock = append(c.lock, l.Name)
	}
	for _, p := range w.job.Pools {
		var err error
		c.pool[p.Name], err = allocator.NewPool(c.pools, p.Name, allocator.PoolConfig[string]{
			MaxSharers: p.Sharers, Cooldown: time.Duration(p.Cooldown) * time.Millisecond,
		})
		must(err)
	}
	return c
}

// must ends the process for an error that only a mistake in it can make.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// crew is a client of each primitive, with the goroutines that use them.
type crew struct {
	clients
	w    *worker
	over chan struct{} // closed when they begin nothing more

	// abrupt is set when the clients are closed in the midst of everything.
	abrupt atomic.Bool

	mu      sync.Mutex
	excused map[string]string // guarded by mu: claims that may be left after the close, and why
	closing map[string]error  // guarded by mu: by node
}

func (w *worker) open() *crew {
	c := &crew{w: w, over: make(chan struct{}), excused: map[string]string{}, closing: map[string]error{}}
	c.clients = w.connectAll(observe.Func(c.observe))
	return c
}

// observe writes down what the clients tell.
func (c *crew) observe(e observe.Event) {
	op, _ := e.Attrs["op"].(int64)
	out := history.Event{
		Op: op, Hold: op, Primitive: e.Primitive, Name: e.Name, Claim: e.Claim, Node: e.Node,
		Fence: e.Fence, Resource: e.Resource, Detail: string(e.Kind),
	}
	if e.Err != nil {
		out.Err, out.Is = e.Err.Error(), is(e.Err)
	}
	switch e.Kind {
	case observe.Queued:
		out.Kind = history.Queued
	case observe.Restored, observe.Requeued:
		out.Kind = history.Restored
	case observe.CleanupFailed, observe.ReleaseFailed:
		c.excuse(e.Claim, string(e.Kind))
		out.Kind = history.Trouble
	case observe.Unavailable, observe.Deaf, observe.Repeated, observe.Failed, observe.Lost, observe.ReleasedByOther, observe.CapacityDiffers:
		out.Kind = history.Trouble
	case observe.Subscribed:
		out.Kind = history.Trouble // after the first, the subscription was broken
	default:
		return
	}
	c.w.log.write(out)
}

// excuse says that a claim may be left on the server when its client is closed.
func (c *crew) excuse(claim, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.excused[claim] = why
}

// closeLimit bounds one Close, and one listing after it.
func (w *worker) closeLimit() time.Duration {
	return time.Duration(w.job.CloseLimit) * time.Millisecond
}

// close closes the clients, all at once.
func (c *crew) close() {
	var closed sync.WaitGroup
	for _, client := range []struct {
		primitive, node string
		close           func(context.Context) error
	}{
		{sem, c.sems.Node(), c.sems.Close}, {lock, c.locks.Node(), c.locks.Close}, {pool, c.pools.Node(), c.pools.Close},
	} {
		closed.Go(func() {
			done := c.w.log.expect(history.Event{Do: "close", Primitive: client.primitive, Node: client.node})
			defer done()
			ctx, cancel := context.WithTimeout(context.Background(), c.w.closeLimit())
			defer cancel()
			err := client.close(ctx)
			c.mu.Lock()
			c.closing[client.node] = err
			c.mu.Unlock()
		})
	}
	closed.Wait()
}

// list asks the server what it still has of the closed clients, and writes it down.
func (c *crew) list() {
	fresh := c.w.connectAll(nil)
	ctx, cancel := context.WithTimeout(context.Background(), c.w.closeLimit())
	defer cancel()
	left := map[string][]string{} // claims by node
	var err error
	for {
		clear(left)
		if err = fresh.list(ctx, left); err == nil || !pause(50*time.Millisecond, ctx.Done()) {
			break
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for primitive, node := range map[string]string{sem: c.sems.Node(), lock: c.locks.Node(), pool: c.pools.Node()} {
		e := history.Event{Kind: history.Closed, Primitive: primitive, Node: node}
		for _, claim := range left[node] {
			if why := c.excused[claim]; why != "" {
				e.Detail += fmt.Sprintf("%s: %s; ", claim, why)
			} else {
				e.Left = append(e.Left, claim)
			}
		}
		if closing := c.closing[node]; closing != nil {
			e.Err = "close: " + closing.Error()
		} else if err != nil {
			e.Err = "list: " + err.Error()
		}
		c.w.log.write(e)
	}
	_ = errors.Join(fresh.sems.Close(ctx), fresh.locks.Close(ctx), fresh.pools.Close(ctx)) // they hold nothing
}

// list adds, by node, the claims of all that hold or wait.
func (c clients) list(ctx context.Context, left map[string][]string) error {
	names := map[keyspace.Kind][]string{
		keyspace.Sem: slices.Collect(maps.Keys(c.sem)), keyspace.Lock: c.lock, keyspace.Pool: slices.Collect(maps.Keys(c.pool)),
	}
	var errs []error
	for kind, of := range names {
		for _, name := range of {
			holders, err := c.holders(ctx, kind, name)
			for _, h := range holders {
				left[h.Node] = append(left[h.Node], h.ID)
			}
			waiters, failed := pages(func(cursor string) (inspect.Page[berth.Waiter], error) {
				return c.read.Waiters(ctx, kind, name, cursor, 0)
			})
			for _, w := range waiters {
				left[w.Node] = append(left[w.Node], w.ID)
			}
			errs = append(errs, err, failed)
		}
	}
	return errors.Join(errs...)
}

// holders are the holds of a name.
func (c clients) holders(ctx context.Context, kind keyspace.Kind, name string) ([]berth.Holder, error) {
	return pages(func(cursor string) (inspect.Page[berth.Holder], error) {
		return c.read.Holders(ctx, kind, name, cursor, 0)
	})
}

// pages reads a listing to its end.
func pages[E any](read func(cursor string) (inspect.Page[E], error)) (all []E, err error) {
	for cursor := ""; ; {
		page, err := read(cursor)
		if err = errors.Join(append(page.Problems, err)...); err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if cursor = page.Next; cursor == "" {
			return all, nil
		}
	}
}
