package integration

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/leader"
	"github.com/berth-go/berth/pkg/node"
)

// leaderServant is a child that stands for election. It takes
//
//	lead     stand for order.Name; the answer comes when it leads
//	look     look at the context of f again and again, by Err, until the process has stood still
//	wait     the same by Done
type leaderServant struct {
	node  *node.Node
	lease time.Duration

	mu    sync.Mutex
	terms map[string]context.Context // guarded by mu: of f, by name
}

func newLeaderServant(n *node.Node, lease time.Duration) *leaderServant {
	return &leaderServant{node: n, lease: lease, terms: map[string]context.Context{}}
}

func (c *leaderServant) carryOut(ctx context.Context, o order, a *answer) error {
	c.mu.Lock()
	term := c.terms[o.Name]
	c.mu.Unlock()
	switch o.Do {
	case "lead":
		return c.lead(ctx, o, a)
	case "look":
		return c.firstLook(term, func() bool { return term.Err() != nil })
	case "wait":
		return c.firstLook(term, func() bool {
			select {
			case <-term.Done():
				return true
			default:
				return false
			}
		})
	}
	return fmt.Errorf("no such order: %q", o.Do)
}

func (c *leaderServant) lead(ctx context.Context, o order, a *answer) error {
	e := leader.New(c.node, o.Name, &leader.Config{Lease: c.lease})
	leads := make(chan struct{})
	go func() {
		_ = e.Run(ctx, func(ctx context.Context) error {
			a.Fence, a.Node = e.Fence(ctx), c.node.ID()
			c.mu.Lock()
			c.terms[o.Name] = ctx
			c.mu.Unlock()
			close(leads)
			<-make(chan struct{}) // f does not heed its context
			return nil
		})
	}()
	<-leads
	return nil
}

// firstLook returns what the first look says after the process has stood still for longer than its lease: no timer
// has a chance to fire between that and the one before.
func (c *leaderServant) firstLook(term context.Context, ended func() bool) error {
	for before := time.Now(); ; {
		now := time.Now()
		over := ended()
		switch {
		case now.Sub(before) < c.lease && !over:
			before = now
		case !over:
			return errors.New("it lives")
		default:
			return context.Cause(term)
		}
	}
}

// Each look is the first one after a child has stood still for longer than its lease.
func TestAStoppedLeaderIsToldAtItsFirstLook(t *testing.T) {
	w := sharedLocks(t)
	child := w.spawnAs(spec{Lease: safe, Leads: true})
	n := w.node(node.Config{})
	looks := []string{"look", "wait"} // each at a term of its own
	fences, begins := map[string]int64{}, map[string]chan int64{}
	ctx, cancel := context.WithCancel(w.Within(2 * patience))
	var runs sync.WaitGroup
	for _, look := range looks {
		a := child.ask(order{Do: "lead", Name: look})
		require.Empty(t, a.Err)
		fences[look], begins[look] = a.Fence, make(chan int64, 1)
		next := leader.New(n, look, &leader.Config{Lease: time.Minute})
		runs.Go(func() {
			_ = next.Run(ctx, func(ctx context.Context) error {
				begins[look] <- next.Fence(ctx)
				<-ctx.Done()
				return nil
			})
		})
		w.awaitInLine(look, 1, func() bool { return len(begins[look]) > 0 })
	}
	first := map[string]<-chan answer{}
	for _, look := range looks {
		first[look] = child.send(order{Do: look, Name: look}) // it looks all the time
	}
	require.Empty(t, child.ask(order{Do: "lead", Name: "another"}).Err, "the orders before are under way")
	child.stop()
	for _, look := range looks {
		require.Greater(t, <-begins[look], fences[look])
	}
	// The lease has run since the last heartbeat; the child is to have stood still for longer than a lease.
	w.pass(safe / 2)
	child.signal(syscall.SIGCONT)
	for _, look := range looks {
		a := child.hear(first[look])
		t.Logf("%s: %s", look, a.Err)
		require.Contains(t, a.Is, "lost", look)
	}
	cancel()
	runs.Wait()
}
