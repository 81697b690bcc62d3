package integration

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

// childSpec is the variable that makes the test binary a child process,
// which does what its standard input says, and ends with it.
const childSpec = "BERTH_INTEGRATION_CHILD"

// spec is what a child is.
type spec struct {
	URL       string
	Namespace string
	Lease     time.Duration
	Locks     bool // it has locks instead of semaphores
	Pools     bool // it has pools instead of semaphores
	Once      bool // it runs once in each period
	Swarm     node.SwarmConfig
}

// order is one thing for a child to do. All orders run at the same time.
type order struct {
	ID       int
	Do       string // see the servants
	Name     string // of the semaphore, lock or pool
	Owner    string // for whom it is; "": nobody
	Capacity int
	Lease    time.Duration
	NoRenew  bool
	By       time.Duration // for extend, and what a run takes
	Count    int           // for crowd, hoard
	Names    []string      // for add, remove
	Path     string        // for mix
	Rest     time.Duration // of the resources of a pool, after each hold
}

// answer is what came of it.
type answer struct {
	ID    int
	Claim string // of a run its period
	Fence int64
	Node  string
	Got   string // the resource
	Err   string
	Is    []string // the sentinels that the error matches
}

// sentinels are the errors that an answer tells apart.
var sentinels = map[string]error{
	"lost": berth.ErrLost, "expired": berth.ErrExpired, "not held": berth.ErrNotHeld,
	"released": berth.ErrReleased, "not acquired": berth.ErrNotAcquired,
}

func beChild(text string) int {
	var s spec
	err := json.Unmarshal([]byte(text), &s)
	if err == nil {
		err = obey(s)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		return 1
	}
	return 0
}

// servant is the child.
type servant struct {
	carryOut func(ctx context.Context, o order, a *answer) error

	mu  sync.Mutex
	out *json.Encoder // guarded by mu
}

func obey(s spec) error {
	option, err := rueidis.ParseURL(s.URL)
	if err != nil {
		return err
	}
	option.DisableCache = true
	option.Dialer.Timeout = calls
	redis, err := rueidis.NewClient(option)
	if err != nil {
		return err
	}
	defer redis.Close()
	n, err := node.New(redis, node.Config{
		Namespace: s.Namespace, Lease: s.Lease, CallTimeout: calls, Retry: heard, Swarm: s.Swarm,
	})
	if err != nil {
		return err
	}
	c := &servant{out: json.NewEncoder(os.Stdout)}
	c.carryOut = newHoldServant(n, s).carryOut
	if s.Once {
		c.carryOut = (&onceServant{n}).carryOut
	}
	in := json.NewDecoder(bufio.NewReader(os.Stdin))
	for {
		var o order
		if in.Decode(&o) != nil {
			return nil // the parent has gone, and nothing here matters any more
		}
		go c.serve(o)
	}
}

func (c *servant) serve(o order) {
	a := answer{ID: o.ID}
	if err := c.carryOut(berth.WithOwner(context.Background(), o.Owner), o, &a); err != nil {
		a.Err = err.Error()
		for word, sentinel := range sentinels {
			if errors.Is(err, sentinel) {
				a.Is = append(a.Is, word)
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.out.Encode(a) // a parent that has gone does not read
}

// child is a child process as its parent sees it.
type child struct {
	w   *world
	cmd *exec.Cmd

	mu      sync.Mutex
	in      *json.Encoder       // guarded by mu
	last    int                 // guarded by mu: the id of the last order
	answers map[int]chan answer // guarded by mu: of those not yet answered
	ended   chan struct{}       // closed when the process has been waited for
}

// spawn starts a child on the world's server. It is killed when the test ends.
func (w *world) spawn(lease time.Duration) *child {
	w.Helper()
	return w.spawnAs(spec{Lease: lease, Locks: w.kind == keyspace.Lock, Pools: w.kind == keyspace.Pool})
}

// spawnAs is spawn for a child that differs in more than its lease.
func (w *world) spawnAs(s spec) *child {
	w.Helper()
	s.URL, s.Namespace = w.server.URL(), w.ns
	text, err := json.Marshal(s)
	require.NoError(w, err)
	c := &child{w: w, cmd: exec.Command(os.Args[0]), answers: map[int]chan answer{}, ended: make(chan struct{})}
	c.cmd.Env = append(os.Environ(), childSpec+"="+string(text))
	c.cmd.Stderr = os.Stderr
	in, err := c.cmd.StdinPipe()
	require.NoError(w, err)
	out, err := c.cmd.StdoutPipe()
	require.NoError(w, err)
	require.NoError(w, c.cmd.Start())
	c.in = json.NewEncoder(in)
	go c.read(json.NewDecoder(out))
	w.Cleanup(c.kill)
	return c
}

func (c *child) read(out *json.Decoder) {
	defer close(c.ended)
	for {
		var a answer
		if out.Decode(&a) != nil {
			_ = c.cmd.Wait() // it was killed
			return
		}
		c.mu.Lock()
		to := c.answers[a.ID]
		c.mu.Unlock()
		to <- a
	}
}

// send gives an order; its answer comes on the channel.
func (c *child) send(o order) <-chan answer {
	c.w.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	o.ID = c.last
	to := make(chan answer, 1)
	c.answers[o.ID] = to
	require.NoError(c.w, c.in.Encode(o))
	return to
}

// ask gives an order and waits for the answer.
func (c *child) ask(o order) answer {
	c.w.Helper()
	return c.hear(c.send(o))
}

func (c *child) hear(from <-chan answer) answer {
	c.w.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case a := <-from:
		return a
	case <-c.ended:
		require.FailNow(c.w, "the child has ended")
	case <-timer.C:
		require.FailNow(c.w, "the child does not answer")
	}
	return answer{}
}

// acquire has the child take the name; the capacity is that of a semaphore.
func (c *child) acquire(name string, capacity int) answer {
	c.w.Helper()
	a := c.ask(order{Do: "acquire", Name: name, Capacity: capacity})
	require.Empty(c.w, a.Err)
	return a
}

// queue has the child begin an acquire, and returns when so many wait.
func (c *child) queue(name string, capacity, waiting int) <-chan answer {
	c.w.Helper()
	from := c.send(order{Do: "acquire", Name: name, Capacity: capacity})
	c.w.Await("the child stands in line", func() bool {
		require.Empty(c.w, from, "the child has an answer already")
		v := c.w.look(name)
		return v.waiting() >= waiting
	})
	return from
}

func (c *child) signal(sig syscall.Signal) {
	c.w.Helper()
	require.NoError(c.w, c.cmd.Process.Signal(sig))
}

// stop halts the child, and returns when it stands still.
func (c *child) stop() {
	c.w.Helper()
	c.signal(syscall.SIGSTOP)
	c.w.Await("the child has stopped", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.cmd.Process.Pid))
		require.NoError(c.w, err)
		return stopped(string(stat))
	})
}

// kill ends the child at once and waits until it is gone.
func (c *child) kill() {
	_ = c.cmd.Process.Kill() // it may have ended
	<-c.ended
}

// stopped reads the state of a process out of /proc/<pid>/stat: the letter after
// the name, which is in brackets and may contain anything.
func stopped(stat string) bool {
	_, after, _ := strings.Cut(stat[strings.LastIndexByte(stat, ')'):], " ")
	return strings.HasPrefix(after, "T")
}

// holdServant is a child that uses semaphores, locks or pools. It takes
//
//	acquire   what order.Name names
//	crowd     begin order.Count acquires that nobody waits for
//	err, context, renew, release   of what it has of order.Name
//	node      the child's node
//	swarm     start the swarm
//	extend    a lock, by order.By
//	hoard     take order.Count resources, and keep them without renewing
//	add       resources, order.Names
//	mix       hold again and again, with all that there is to do, and note that in the folder order.Path
//	die       end as by kill -9, in the midst of the next stay
//	enough    end the mix
type holdServant struct {
	*locker // without locks in a child with something else

	mu    sync.Mutex
	holds map[string]berth.Hold // guarded by mu, by name
	pools map[string]*pool      // guarded by mu, by name; nil in a child with something else

	dies, done atomic.Bool
}

func newHoldServant(n *node.Node, s spec) *holdServant {
	c := &holdServant{locker: &locker{Node: n}, holds: map[string]berth.Hold{}}
	if s.Locks {
		c.Locks = qlock.New(n, qlock.Config{Lease: s.Lease})
	} else if s.Pools {
		c.pools = map[string]*pool{}
	}
	return c
}

// pool is the pool of an order. The first order of a pool says how it rests.
func (c *holdServant) pool(o order) *pool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pools[o.Name] == nil {
		c.pools[o.Name] = poolOf(c.Node, o.Name, poolConfig{Cooldown: o.Rest})
	}
	return c.pools[o.Name]
}

// take takes what an order names.
func (c *holdServant) take(ctx context.Context, o order) (h berth.Hold, err error) {
	switch {
	case c.Locks != nil:
		h, err = c.Lock(ctx, o.Name, &qlock.LockOptions{Lease: o.Lease, NoRenew: o.NoRenew})
	case c.pools != nil:
		h, err = c.pool(o).Allocate(ctx, &allocator.AllocateOptions{Lease: o.Lease, NoRenew: o.NoRenew})
	default:
		s := semaphore.New(c.Node, o.Name, o.Capacity, semaphore.Config{})
		h, err = s.Acquire(ctx, &semaphore.AcquireOptions{Lease: o.Lease, NoRenew: o.NoRenew})
	}
	return h, err
}

func (c *holdServant) carryOut(ctx context.Context, o order, a *answer) (err error) {
	c.mu.Lock()
	h := c.holds[o.Name]
	c.mu.Unlock()
	switch o.Do {
	case "acquire":
		return c.acquire(ctx, o, a)
	case "crowd":
		for range o.Count {
			go func() { _, _ = c.take(ctx, o) }()
		}
	case "err":
		return h.Err()
	case "context":
		if h.Context().Err() != nil {
			return context.Cause(h.Context())
		}
	case "renew":
		return h.Renew(ctx)
	case "release":
		return h.Release(ctx)
	case "extend":
		return h.(*qlock.Lock).Extend(ctx, o.By)
	case "swarm":
		return c.Swarm().Start(ctx)
	case "node":
		a.Node = c.ID()
	case "hoard":
		return hoard(ctx, c.pool(o), o.Count)
	case "add":
		_, err = c.pool(o).Add(ctx, o.Names, nil)
	case "mix":
		return c.mix(ctx, o)
	case "die":
		c.dies.Store(true)
	case "enough":
		c.done.Store(true)
	default:
		return fmt.Errorf("no such order: %q", o.Do)
	}
	return err
}

func (c *holdServant) acquire(ctx context.Context, o order, a *answer) error {
	h, err := c.take(ctx, o)
	if err != nil {
		return err
	}
	a.Claim, a.Fence, a.Node = h.ID(), h.Fence(), c.ID()
	c.mu.Lock()
	c.holds[o.Name] = h
	c.mu.Unlock()
	return nil
}

// hoard takes many resources at once. Nothing renews them.
func hoard(ctx context.Context, p *pool, many int) error {
	const workers = 64
	errs := make([]error, workers)
	var left atomic.Int64
	left.Store(int64(many))
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() {
			for errs[i] == nil && left.Add(-1) >= 0 {
				_, errs[i] = p.TryAllocate(ctx, &allocator.AllocateOptions{NoRenew: true})
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// member starts a child with a part in a swarm, which holds the door for an hour, without renewing it.
func (w *world) member() (c *child, held answer) {
	w.Helper()
	c = w.spawnAs(spec{Locks: true, Swarm: inSwarm()})
	require.Empty(w, c.ask(order{Do: "swarm"}).Err)
	held = c.ask(order{Do: "acquire", Name: door, Lease: time.Hour, NoRenew: true})
	require.Empty(w, held.Err)
	return c, held
}
