package integration

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/leader"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/test/harness"
)

// boss is what these tests elect.
const boss = "boss"

// leaderServant is a child that stands for election. It takes
//
//	lead     stand for order.Name; the answer comes when it leads
//	look     look at the context of f again and again, by Err, until the process has stood still
//	wait     the same by Done
//	context  look at it once
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
	case "context":
		if term.Err() == nil {
			return nil
		}
		return context.Cause(term)
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

// candidate is a node that stands for election, closed when the test ends.
func (w *world) candidate(redis rueidis.Client, lease time.Duration) *node.Node {
	w.Helper()
	return w.nodeOn(redis, node.Config{Lease: lease, CleanupTimeout: 2 * time.Second})
}

// stage is where terms take place: in the moment in which one begins, the contexts of all others have ended, and
// its fence is the greatest.
type stage struct {
	mu    sync.Mutex
	began chan struct{}      // guarded by mu: closed with the next term
	all   []context.Context  // guarded by mu: of the terms, in their order
	who   []*leader.Election // guarded by mu: of each
	fence int64              // guarded by mu
	wrong []string           // guarded by mu
}

func (s *stage) enter(ctx context.Context, e *leader.Election, fence int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, other := range s.all {
		if other.Err() == nil {
			s.wrong = append(s.wrong, fmt.Sprintf("the context of term %d lives when term %d begins", i, len(s.all)))
		}
	}
	if fence <= s.fence {
		s.wrong = append(s.wrong, fmt.Sprintf("fence %d comes after %d", fence, s.fence))
	}
	s.all, s.who, s.fence = append(s.all, ctx), append(s.who, e), fence
	close(s.began)
	s.began = make(chan struct{})
}

// terms are how many there were, who has the newest, and what is closed when the next one begins.
func (s *stage) terms() (count int, newest *leader.Election, next <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if count = len(s.all); count > 0 {
		newest = s.who[count-1]
	}
	return count, newest, s.began
}

// stand has a process stand until the test ends.
func (w *world) stand(s *stage, e *leader.Election) {
	w.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = e.Run(ctx, func(ctx context.Context) error {
			s.enter(ctx, e, e.Fence(ctx))
			<-ctx.Done()
			return nil
		})
	}()
	w.Cleanup(func() {
		cancel()
		<-over
	})
}

// A child leads, and is killed.
func TestTheNextLeadsALeaseAfterAKill(t *testing.T) {
	w := sharedLocks(t)
	n := w.candidate(w.server.Client(t), crashLease)
	next, c := leader.New(n, boss, &leader.Config{Lease: crashLease}), w.crash(boss, n.ID())
	first := w.spawnAs(spec{Lease: crashLease, Leads: true})
	require.Empty(t, first.ask(order{Do: "lead", Name: boss}).Err)
	began := make(chan int64, 1)
	ctx, cancel := context.WithCancel(w.Within(2 * patience))
	over := make(chan error, 1)
	go func() {
		over <- next.Run(ctx, func(ctx context.Context) error {
			began <- w.now()
			<-ctx.Done()
			return nil
		})
	}()
	w.awaitInLine(boss, 1, func() bool { return len(began) > 0 })
	c.beat()
	c.kill(first)
	at := <-began
	now, err := next.Current(w.Within(patience))
	require.NoError(t, err)
	c.inTime(now.ID, 0)
	require.LessOrEqual(t, at-c.deadline, c.lag.allow(slack, 4).Milliseconds(), "f began so much after the lease")
	cancel()
	require.NoError(t, <-over)
}

// How a network between a leader and the server fails.
var partitions = []func(p *harness.Proxied){(*harness.Proxied).Cut, (*harness.Proxied).BlackHole, (*harness.Proxied).DropReplies}

// In 100 partitions on a real server, in ten lanes beside each other, the context of f has ended before another
// leads. All in virtual time, and exact: pkg/leader.
func TestThroughPartitionsNoTwoLead(t *testing.T) {
	t.Parallel()
	for lane := range 10 {
		t.Run(fmt.Sprint(lane), func(t *testing.T) {
			const lease, rounds = time.Second, 10
			w := sharedLocks(t)
			w.Relies(lease)
			s := &stage{began: make(chan struct{})}
			links := map[*leader.Election]*harness.Proxied{}
			for range 2 {
				proxy := harness.Proxy(t, w.server)
				e := leader.New(w.candidate(proxy.Client(t), lease), boss, &leader.Config{Lease: lease})
				links[e] = proxy
				w.stand(s, e)
			}
			for round := range rounds {
				w.Await("one leads and the other one stands", func() bool {
					count, _, _ := s.terms()
					return count > 0 && w.look(boss).waiting() == 1
				})
				count, leads, next := s.terms()
				partitions[(lane+round)%len(partitions)](links[leads])
				for newest := leads; newest == leads; _, newest, next = s.terms() {
					w.Signalled(fmt.Sprintf("the other one to lead in round %d, after term %d", round, count), next)
				}
				links[leads].Heal(t)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			require.Empty(t, s.wrong)
			require.GreaterOrEqual(t, len(s.all), rounds+1)
		})
	}
}

// Each look is the first one after a child has stood still for longer than its lease.
func TestAStoppedLeaderIsToldAtItsFirstLook(t *testing.T) {
	w := sharedLocks(t)
	child := w.spawnAs(spec{Lease: safe, Leads: true})
	n := w.candidate(w.server.Client(t), time.Minute)
	looks := []string{"look", "wait", "context"} // each at a term of its own
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
	for _, look := range []string{"look", "wait"} {
		first[look] = child.send(order{Do: look, Name: look}) // it looks all the time
	}
	require.Empty(t, child.ask(order{Do: "context", Name: "context"}).Err, "the orders before are under way")
	child.stop()
	for _, look := range looks {
		require.Greater(t, <-begins[look], fences[look])
	}
	// The lease has run since the last heartbeat; the child is to have stood still for longer than a lease.
	w.pass(safe / 2)
	first["context"] = child.send(order{Do: "context", Name: "context"}) // it waits in the pipe
	child.signal(syscall.SIGCONT)
	for _, look := range looks {
		a := child.hear(first[look])
		t.Logf("%s: %s", look, a.Err)
		require.Contains(t, a.Is, "lost", look)
	}
	cancel()
	runs.Wait()
}
