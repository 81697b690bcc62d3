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
	"github.com/berth-go/berth/pkg/node"
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

// whole is what events name that are about the node, and about no primitive alone.
const whole = "node"

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

// faces are a node, and what it has of each primitive.
type faces struct {
	node  *node.Node
	locks *qlock.Locks
	read  *inspect.Reader

	sem  map[string]*semaphore.Semaphore
	lock []string // the names
	pool map[string]*allocator.Pool[string]
}

// node makes a node. It does no I/O but that of a swarm, so an error is one of this program.
func (w *worker) node(label string, swarm bool, o observe.Observer) *node.Node {
	lease := w.lease()
	n, err := node.New(w.redis, node.Config{
		Namespace: w.job.Namespace, Label: label, Lease: lease, Observer: o,
		Swarm: node.SwarmConfig{Auto: swarm, ProbeEvery: lease / 4, ZombieAfter: lease * 3 / 2, FlushEvery: lease},
	})
	must(err)
	return n
}

// lease is the wait lease.
func (w *worker) lease() time.Duration { return time.Duration(w.job.Lease) * time.Millisecond }

// faces makes what there is on a node.
func (w *worker) faces(n *node.Node) faces {
	read, err := inspect.New(w.redis, inspect.Config{Namespace: w.job.Namespace})
	must(err)
	c := faces{
		node: n, locks: qlock.New(n, qlock.Config{Lease: w.lease()}), read: read, // theirs is 5 s at the most where nothing is said
		sem: map[string]*semaphore.Semaphore{}, pool: map[string]*allocator.Pool[string]{},
	}
	for _, s := range w.job.Sems {
		c.sem[s.Name] = semaphore.New(n, s.Name, s.Capacity, semaphore.Config{})
	}
	for _, name := range w.job.Endless {
		c.lock, c.sem[name] = append(c.lock, name), semaphore.New(n, name, 1, semaphore.Config{})
	}
	for _, l := range w.job.Locks {
		c.lock = append(c.lock, l.Name)
	}
	for _, p := range w.job.Pools {
		c.pool[p.Name] = allocator.New(n, p.Name, allocator.Config[string]{
			MaxSharers: p.Sharers, Cooldown: time.Duration(p.Cooldown) * time.Millisecond,
		})
	}
	return c
}

// must ends the process for an error that only a mistake in it can make.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// crew is a node with what it has of each primitive, and the goroutines that use them.
type crew struct {
	faces
	w      *worker
	number int64         // drawn once per process
	label  string        // of the node; that of who comes after it is the same
	over   chan struct{} // closed when they begin nothing more

	// abrupt is set when the node is closed in the midst of everything.
	abrupt atomic.Bool

	mu      sync.Mutex
	excused map[string]string // guarded by mu: claims that may be left after the close, and why
	closing error             // guarded by mu: what the close has returned
	former  []string          // guarded by mu: the ids that the node had before, in a swarm
}

// open makes a crew, which takes part in a swarm or does not.
func (w *worker) open(label string, swarm bool) *crew {
	c := &crew{
		w: w, number: w.opened.Add(1), label: w.job.Process + "/" + label, over: make(chan struct{}), excused: map[string]string{},
	}
	c.faces = w.faces(w.node(c.label, swarm, observe.Func(c.observe)))
	return c
}

// observe writes down what the node tells.
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
	case observe.NodeReplaced:
		c.mu.Lock()
		c.former = append(c.former, e.Detail)
		c.mu.Unlock()
		out.Kind, out.Former = history.Trouble, e.Detail
	case observe.Subscribed:
		out.Kind = history.Trouble // after the first, the subscription was broken
	default:
		return
	}
	c.w.log.write(out)
}

// excuse says that a claim may be left on the server when its node is closed.
func (c *crew) excuse(claim, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.excused[claim] = why
}

// closeLimit bounds one Close, and one listing after it.
func (w *worker) closeLimit() time.Duration {
	return time.Duration(w.job.CloseLimit) * time.Millisecond
}

// close closes the node, with all that it has of each primitive.
func (c *crew) close() {
	done := c.w.log.expect(history.Event{Do: "close", Primitive: whole, Node: c.node.ID()})
	defer done()
	ctx, cancel := context.WithTimeout(context.Background(), c.w.closeLimit())
	defer cancel()
	err := c.node.Close(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closing = err
}

// list asks the server what it still has of the closed node, and writes it down.
func (c *crew) list() {
	ctx, cancel := context.WithTimeout(context.Background(), c.w.closeLimit())
	defer cancel()
	left := map[string][]string{} // claims by node
	var err error
	for {
		clear(left)
		if err = c.faces.list(ctx, left); err == nil || !pause(50*time.Millisecond, ctx.Done()) {
			break
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range append(c.former, c.node.ID()) {
		c.closed(id, left, err)
	}
}

// closed writes down what a listing, which may have failed, shows of a node that was closed. c.mu is held.
func (c *crew) closed(node string, left map[string][]string, listing error) {
	e := history.Event{Kind: history.Closed, Primitive: whole, Node: node}
	for _, claim := range left[node] {
		if why := c.excused[claim]; why != "" {
			e.Detail += fmt.Sprintf("%s: %s; ", claim, why)
		} else {
			e.Left = append(e.Left, claim)
		}
	}
	if c.closing != nil {
		e.Err = "close: " + c.closing.Error()
	} else if listing != nil {
		e.Err = "list: " + listing.Error()
	}
	c.w.log.write(e)
}

// list adds, by node, the claims of all that hold or wait.
func (c faces) list(ctx context.Context, left map[string][]string) error {
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
func (c faces) holders(ctx context.Context, kind keyspace.Kind, name string) ([]berth.Holder, error) {
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
