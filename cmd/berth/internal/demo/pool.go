package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

// proxies is the name of the pool.
const proxies = "proxies"

// proxyKeys are its resources. The last letter of each is its sign in the picture.
var proxyKeys = []string{"proxy-a", "proxy-b", "proxy-c"}

// The workers to whom something happens.
const (
	dies     = 2 // is killed while it has a proxy
	first    = 3 // comes for cleo for the first time
	again    = 4 // comes for cleo again, and gets a 429
	blocker  = 5 // has a proxy while others wait
	moved    = 6 // comes for cleo while her proxy is in use
	rested   = 7 // gets the proxy that has rested
	returned = 8 // comes for cleo once more
)

// Each worker stays until its part of the story has happened, so that a busy machine tells the
// same story. No worker leaves before two stand in line. The first of these gets the dead
// worker's proxy, and only then the other proxy begins its rest.
var poolPlan = plan{
	workers: 8, capacity: len(proxyKeys), lease: time.Second, length: 2500 * time.Millisecond,
	askEvery: 100 * time.Millisecond, victim: dies, killAfter: 400 * time.Millisecond,
	order: func(worker int) order {
		return map[int]order{
			1:        {Bind: "anna", Work: 150 * time.Millisecond},
			dies:     {Bind: "ben"},
			first:    {Bind: "cleo", Work: 200 * time.Millisecond},
			again:    {Bind: "cleo", Work: 200 * time.Millisecond, Rest: 900 * time.Millisecond},
			blocker:  {Bind: "anna", Work: 200 * time.Millisecond},
			moved:    {Bind: "cleo", Work: 300 * time.Millisecond},
			rested:   {Bind: "dora", Work: 100 * time.Millisecond},
			returned: {Bind: "cleo", Work: 150 * time.Millisecond},
		}[worker]
	},
	due: func(s *story, worker int) bool {
		switch worker {
		case first:
			return s.turn(1).gone != nil
		case again:
			return s.turn(first).gone != nil
		case returned:
			return s.turn(moved).gone != nil && s.turn(rested).gone != nil
		}
		return true
	},
	stays: func(s *story, worker int) bool {
		switch worker {
		case dies:
			return s.turn(rested).queued == nil
		case again:
			return s.turn(moved).granted == nil
		case blocker:
			return s.turn(moved).granted == nil || s.turn(rested).granted == nil
		case moved:
			return s.turn(rested).gone == nil
		case rested:
			return s.turn(moved).granted == nil
		}
		return false
	},
}

var poolAct = act{
	name:  "pool",
	title: "Berth demo: a pool of proxies between processes",
	about: fmt.Sprintf(`Here are %d proxies, and %d processes that fetch something for a customer through
one of them. A customer keeps its proxy where that is free (a binding), and gets
another one where it is not. Worker %d will be killed (SIGKILL) while it has one;
its lease is %s. Worker %d will be answered 429, too many requests, and lets its
proxy rest for %s.
`, len(proxyKeys), poolPlan.workers, dies, poolPlan.lease, again, poolPlan.order(again).Rest),
	next: `What this was: a pool has resources with keys of your own. Who waits for one
gets what comes back, in the order in which they came; what rests comes back by
itself, and so does what a dead process had.

With a Redis or Valkey you can have the same for any command:

  berth pool add proxies 10.0.0.1:3128 10.0.0.2:3128
  berth run --pool proxies -- printenv BERTH_RESOURCE
  berth pool show proxies

'berth pool --help' says more; in Go it is package pkg/allocator.`,
	play: playPool,
	join: joinPool,
}

func playPool(ctx context.Context, s *stage) ([]fact, error) {
	redis, err := s.server.Client()
	if err != nil {
		return nil, err
	}
	defer redis.Close()
	n, err := node.New(redis, node.Config{Namespace: namespace})
	if err != nil {
		return nil, err
	}
	defer func() { _ = n.Close(context.WithoutCancel(ctx)) }() // it holds nothing
	if err := fresh(ctx, allocator.New(n, proxies, allocator.Config[string]{})); err != nil {
		return nil, err
	}
	on, err := s.onServer(redis, keyspace.Pool, proxies)
	if err != nil {
		return nil, err
	}
	e, err := s.direct(ctx, poolPlan, on)
	if err != nil {
		return nil, err
	}
	found, err := allocator.NewOperator(n).Inspect(ctx, proxies)
	if err != nil {
		return nil, err
	}
	return e.poolFacts(found), nil
}

// fresh gives a pool its resources, and takes away what an act before has left.
func fresh(ctx context.Context, pool *allocator.Pool[string]) error {
	for worker := 1; worker <= poolPlan.workers; worker++ {
		if err := pool.Unbind(ctx, poolPlan.order(worker).Bind); err != nil {
			return err
		}
	}
	_, gone := pool.Remove(ctx, proxyKeys)
	_, added := pool.Add(ctx, proxyKeys, nil)
	return errors.Join(gone, added)
}

// joinPool is what a worker of this act is on its side.
func joinPool(n *node.Node, _ time.Duration) *desk {
	pool := allocator.New(n, proxies, allocator.Config[string]{})
	return &desk{enter: func(ctx context.Context, o order) (place, error) {
		return pool.Allocate(ctx, &allocator.AllocateOptions{Bind: o.Bind})
	}}
}

// none is what a worker finds that has to wait.
func (t *turn) none() string {
	if t.customer != "" {
		return "no free proxy"
	}
	return "no free place"
}

// has is what a worker has while it is inside.
func (t *turn) has() string {
	if t.resource != "" {
		return t.resource
	}
	return "its place"
}

// farewell is how a worker goes.
func (t *turn) farewell() string {
	switch {
	case t.rest > 0:
		return fmt.Sprintf("is answered 429, and lets %s rest for %s", t.resource, short(t.rest))
	case t.resource != "":
		return "has done its work and gives " + t.resource + " back"
	}
	return "has done its work and gives its place back"
}

// inside is the sign of a worker that is inside.
func (t *turn) inside() string {
	if t.resource == "" {
		return signInside
	}
	return t.resource[len(t.resource)-1:]
}

// signs are those of all resources, "" in an act without any.
func (s *story) signs() string {
	if len(s.turns) == 0 || s.turns[0].customer == "" {
		return ""
	}
	signs := ""
	for _, key := range proxyKeys {
		signs += key[len(key)-1:]
	}
	return signs
}

// allotment is how a worker got its resource.
func (d *director) allotment(t *turn) string {
	which := t.resource
	if before := d.story.lastOf(t); before != nil && before.resource == t.resource {
		which += " again"
	} else if before != nil {
		which += " and not " + before.resource
	}
	if t.queued == nil {
		return "asks, and gets " + which + " at once"
	}
	return fmt.Sprintf("gets %s, after %s in line", which, short(*t.granted-*t.queued))
}
