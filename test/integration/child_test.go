package integration

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
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
	Label     string
	Locks     bool // it has locks instead of semaphores
	Pools     bool // it has pools instead of semaphores
	Leads     bool // it stands for election
	Once      bool // it runs once in each period
	Swarm     node.SwarmConfig
	Busy      bool // no node: it only keeps a processor busy
}

// order is one thing for a child to do. All orders run at the same time.
type order struct {
	ID       int
	Do       string // acquire, crowd, err, context, renew, release; see the other servants for theirs
	Name     string // of the semaphore, lock or pool
	Owner    string // for whom it is; "": nobody
	Capacity int
	Lease    time.Duration
	NoRenew  bool          // of a lock
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
	"released": berth.ErrReleased, "not acquired": berth.ErrNotAcquired, "draining": berth.ErrDraining,
}

func beChild(text string) int {
	var s spec
	err := json.Unmarshal([]byte(text), &s)
	switch {
	case err != nil:
	case s.Busy:
		keepBusy()
	default:
		err = obey(s)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		return 1
	}
	return 0
}

// keepBusy runs until the standard input ends, and waits for nothing.
func keepBusy() {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	for turns := 0; ; turns++ {
		_ = turns
	}
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
		Namespace: s.Namespace, Label: s.Label, Lease: s.Lease, CallTimeout: calls, Retry: heard, Swarm: s.Swarm,
	})
	if err != nil {
		return err
	}
	c := &servant{out: json.NewEncoder(os.Stdout)}
	switch {
	case s.Locks:
		c.carryOut = newLockServant(n, s.Lease).carryOut
	case s.Leads:
		c.carryOut = newLeaderServant(n, s.Lease).carryOut
	case s.Once:
		c.carryOut = (&onceServant{n}).carryOut
	case s.Pools:
		c.carryOut = newPoolServant(n).carryOut
	default:
		c.carryOut = newPermitServant(n).carryOut
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

// permitServant is a child that uses semaphores.
type permitServant struct {
	node *node.Node

	mu      sync.Mutex
	permits map[string]*semaphore.Permit // guarded by mu, by name
}

func newPermitServant(n *node.Node) *permitServant {
	return &permitServant{node: n, permits: map[string]*semaphore.Permit{}}
}

func (c *permitServant) carryOut(ctx context.Context, o order, a *answer) error {
	c.mu.Lock()
	p := c.permits[o.Name]
	c.mu.Unlock()
	switch o.Do {
	case "acquire":
		return c.acquire(ctx, o, a)
	case "crowd":
		return c.crowd(ctx, o)
	case "err":
		return p.Err()
	case "context":
		if p.Context().Err() == nil {
			return nil
		}
		return context.Cause(p.Context())
	case "renew":
		return p.Renew(ctx)
	case "release":
		return p.Release(ctx)
	}
	return fmt.Errorf("no such order: %q", o.Do)
}

func (c *permitServant) acquire(ctx context.Context, o order, a *answer) error {
	p, err := semaphore.New(c.node, o.Name, o.Capacity, nil).Acquire(ctx, &semaphore.AcquireOptions{Lease: o.Lease})
	if err != nil {
		return err
	}
	a.Claim, a.Fence = p.ID(), p.Fence()
	c.mu.Lock()
	c.permits[o.Name] = p
	c.mu.Unlock()
	return nil
}

// crowd begins many acquires that nobody waits for.
func (c *permitServant) crowd(ctx context.Context, o order) error {
	sem := semaphore.New(c.node, o.Name, o.Capacity, nil)
	for range o.Count {
		go func() { _, _ = sem.Acquire(ctx, nil) }()
	}
	return nil
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

// acquire has the child take a permit.
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
