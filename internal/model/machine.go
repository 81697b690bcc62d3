package model

import (
	"context"
	"sync"
	"time"

	"github.com/redis/rueidis"
	"pgregory.net/rapid"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/pkg/semaphore"
)

// World is where the model runs.
type World struct {
	// Redis looks on, and forgets on purpose.
	Redis rueidis.Client
	// Namespace and Name are a semaphore that nobody has used yet.
	Namespace, Name string
	// Lease is the longest wait lease of the processes.
	Lease time.Duration
	// Connect makes the connections of one process, on a link of their own.
	Connect func() (rueidis.Client, *link.Link)
	// Advance lets time pass, and what happens then.
	Advance func(d time.Duration)
	// Settle returns when all that was begun has come to rest: in virtual time by
	// itself, else when done says so.
	Settle func(done func() bool)
	// Exact says that time is virtual.
	Exact bool
}

// sweep drops what has expired, which nobody may have met since.
func (w *World) sweep() error {
	space, err := keyspace.New(w.Namespace)
	if err != nil {
		return err
	}
	sweeper := line.NewProcess(line.Config{
		Redis: w.Redis, Runner: scriptkit.NewRunner(w.Redis, scriptkit.Options{CallTimeout: testkit.Patience}), Space: space,
		Settings: settings.Common{Linger: linger},
	})
	_, err = sweeper.Face(keyspace.Sem).SweepAll(context.Background(), w.Name)
	return err
}

const (
	linger = 30 * time.Second
	nodes  = 3
)

// process is one with a node of its own.
type process struct {
	*node.Node
	sem   *semaphore.Semaphore
	link  *link.Link
	redis rueidis.Client
	lease time.Duration
	dead  bool
}

// phase is what the model takes a claim for.
type phase int

const (
	asking phase = iota
	waiting
	held
	gone
)

// claim is what the model knows of a claim.
type claim struct {
	id     string
	on     *process // who waits or holds
	opts   semaphore.AcquireOptions
	phase  phase
	place  string
	ends   int64 // where nobody renews it: its deadline, ms by the server's clock
	limit  int64 // the end of its maximum hold, 0 = none
	fixed  bool  // nobody renews it
	lost   bool  // it waits, and the server was made to forget it
	forgot bool  // the server was made to forget it, in real time perhaps with a grant that no look has seen
	least  int   // the lowest capacity since it came
	anew   bool  // in real time its grant ended before the call had it, and it asked anew
	above  int64 // the fence that was known when it was asked for
	permit *semaphore.Permit
	token  berth.Token
	parked bool  // detached
	wanted bool  // somebody has asked for it back
	hears  int64 // by when its handle must know

	cancel context.CancelFunc
	back   bool          // its acquire had returned when the server was last looked at
	done   chan struct{} // closed when its acquire has returned, with:
	got    *semaphore.Permit
	err    error
}

// orphan is the handle of a hold that is somebody else's, or nobody's.
type orphan struct {
	permit *semaphore.Permit
	on     *process
	by     int64 // when it must have heard
}

// machine is one run.
type machine struct {
	World
	processes []*process // the living come first
	claims    []*claim
	orphans   []orphan
	known     map[string]*claim
	last      view // what the last check saw
	named     int  // the capacity that the processes name; what is stored may differ
	capacity  int  // 0 = none stored
	before    int  // the capacity until the resize of this step, in real time
	keep      int64
	ticket    int64
	fence     int64
	died      bool // a process has
	pause     pause
	flushed   bool // the server was made to forget since the last check

	mu       sync.Mutex
	restored map[string]bool // guarded by mu: claims that have asked for their place again
	failed   map[string]bool // guarded by mu: claims that have failed
}

// Run takes the semaphore through one random history, and to its end.
func Run(t *rapid.T, w World) {
	m := &machine{World: w, known: map[string]*claim{}, restored: map[string]bool{}, failed: map[string]bool{}}
	m.named = rapid.SampledFrom([]int{4, 4, 1}).Draw(t, "capacity") // a semaphore of 1 may be thin
	defer m.close()
	for range nodes {
		m.processes = append(m.processes, m.start(t))
	}
	t.Repeat(map[string]func(*rapid.T){
		"":        m.check,
		"acquire": m.acquire, "acquire more": m.acquire, "cancel": m.cancel, "release": m.release,
		"renew": m.renew, "detach": m.detach, "resume": m.resume, "resize": m.resize, "force": m.force,
		"pause": m.pauses, "unpause": m.unpauses, "late pause": m.latePause,
		"want": m.want, "advance": m.advance, "kill": m.kill, "flush": m.flush,
	})
	m.finish(t)
}

// start starts a process.
func (m *machine) start(t *rapid.T) *process {
	c := &process{lease: m.Lease / time.Duration(rapid.IntRange(1, 2).Draw(t, "lease by"))}
	c.redis, c.link = m.Connect()
	var err error
	c.Node, err = node.New(c.redis, node.Config{
		Namespace: m.Namespace, Lease: c.lease, Linger: linger,
		Observer: observe.Func(func(e observe.Event) {
			m.mu.Lock()
			defer m.mu.Unlock()
			switch e.Kind {
			case observe.Restored:
				m.restored[e.Claim] = true
			case observe.Failed:
				m.failed[e.Claim] = true
			}
		}),
	})
	must(t, err)
	c.sem = semaphore.New(c.Node, m.Name, m.named, semaphore.Config{})
	return c
}

// excused says that a claim has been forgotten by the server, which is the one
// thing that may cost a waiter its turn.
func (m *machine) excused(c *claim) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return c.lost || m.restored[c.id]
}

// close ends all processes, also those that cannot reach the server any more.
func (m *machine) close() {
	var all sync.WaitGroup
	for _, c := range m.processes {
		all.Go(func() {
			_ = c.Close(context.Background()) // permits of the dead cannot be given back
			c.redis.Close()
		})
	}
	for _, c := range m.claims {
		c.cancel()
		<-c.done
	}
	all.Wait()
}

// finish gives everything back, lets the rest expire, and checks that nothing is
// left and the capacity is whole.
func (m *machine) finish(t *rapid.T) {
	m.decide(t, 0)
	m.check(t)
	for _, c := range m.claims {
		switch {
		case c.phase == waiting && !c.on.dead:
			m.leave(t, c)
		case c.phase == held && !c.on.dead && !c.parked:
			m.giveBack(t, c)
		case c.phase == held && m.last.holds[c.id] == forever:
			_, err := m.processes[0].Operator().Release(context.Background(), berth.Target{Kind: keyspace.Sem, Name: m.Name, Claim: c.id})
			must(t, err)
			m.take(c)
		}
		m.check(t)
	}
	reader, err := inspect.New(m.Redis, inspect.Config{Namespace: m.Namespace, CallTimeout: testkit.Patience})
	must(t, err)
	empty := func() bool {
		must(t, m.sweep()) // of those who died waiting, too: they are counted until then
		n, err := reader.Name(context.Background(), keyspace.Sem, m.Name)
		must(t, err)
		return n.Holders+n.Waiting == 0
	}
	if m.Exact {
		m.Advance(2 * time.Minute) // tombstones stay for one
	}
	m.Settle(empty)
	if !empty() {
		t.Fatalf("somebody still holds or waits")
	}
	m.check(t)
	if v := m.last; m.Exact && len(v.tombs)+len(v.records)+len(v.stones) > 0 {
		t.Fatalf("something is left: %+v", v)
	}
	whole := m.capacity
	if whole == 0 {
		whole = m.named
	}
	last := &claim{}
	for last.got == nil {
		last.got, last.err = m.processes[0].sem.TryAcquire(context.Background(), &semaphore.AcquireOptions{Weight: whole})
		if m.late(last) {
			m.Settle(empty)
			continue
		}
		must(t, last.err)
	}
	m.allow(t, last.got.Release(context.Background()), berth.ErrNotHeld)
}
