package integration

import (
	"context"
	"errors"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/fence"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

// ahead is a server whose clock is two days ahead.
func ahead(t *testing.T) *world {
	t.Helper()
	w, d := clocked(t)
	d.SetClock(t, 48*time.Hour)
	return w
}

// The user with the smallest rights that docs/operations.md gives can do all, every script of a kind and of the
// swarm. None of them is told the time of this machine: a node cannot tell the server a wrong one, and clocks that are
// apart change nothing.
func TestTheSmallestUser(t *testing.T) {
	t.Parallel()
	overKinds(t, ahead, func(w *world) {
		s := &smallest{world: w, wire: link.New(nil), ctx: w.Within(2 * patience), sent: map[string]bool{}}
		s.wire.OnCommand(s.note)
		s.redis = w.over(s.wire, w.server.SmallestUser(w.T, w.ns))
		cfg := node.Config{Lease: time.Hour, Swarm: watching()} // the first heartbeat is far off: what comes, comes by a push
		cfg.Swarm.FlushEvery = -1
		s.here, s.there = w.useOn(s.redis, cfg), w.useOn(s.redis, cfg)
		s.reader = w.Reader(s.redis, w.ns)
		report, err := s.here.Check(s.ctx)
		require.NoError(w, err)
		for _, warning := range report.Warnings {
			require.Contains(w, warning, "could not be asked")
		}
		s.holds()
		s.operates()
		scripts := "semaphore_"
		switch w.kind {
		case keyspace.Lock:
			s.ofLocks()
			s.ofSwarms()
			s.guards()
			scripts = "lock_"
		case keyspace.Pool:
			s.ofPools()
			scripts = "pool_"
		default:
			require.NoError(w, semaphore.NewOperator(s.here.Node).Resize(s.ctx, w.name(), 2, nil))
			require.NoError(w, semaphore.NewOperator(s.here.Node).Resize(s.ctx, w.name(), 1, nil))
		}
		require.Empty(w, w.refusals(), "commands that the user may not run")
		w.tombstones(w.name())
		s.isRestored()
		for _, script := range library.Scripts() {
			if name := script.Name; strings.HasPrefix(name, scripts) && name != "pool_mend" && name != "pool_expire" {
				require.True(w, s.has(name), "%s was not sent", name)
			}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		require.Empty(w, s.times, "wall-clock times of this machine")
	})
}

// smallest are two processes of the smallest user.
type smallest struct {
	*world
	wire        *link.Link
	redis       rueidis.Client // over the wire
	ctx         context.Context
	here, there *user
	reader      testkit.Reader

	mu    sync.Mutex
	sent  map[string]bool // guarded by mu: the scripts that were sent
	times []string        // guarded by mu: what they were told that is a time of this machine
}

// number is what may be a time: of seconds, or of a smaller unit.
var number = regexp.MustCompile(`\d{10,}`)

// note takes a command that runs a script.
func (s *smallest) note(c link.Command) link.Fate {
	if !strings.HasPrefix(c.Name, "EVAL") {
		return link.Pass
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent[names[c.Args[0]]] = true
	for _, n := range number.FindAllString(strings.Join(c.Args[1:], " "), -1) {
		value, err := strconv.ParseFloat(n, 64)
		for _, unit := range []float64{1, 1e3, 1e6, 1e9} {
			if err == nil && math.Abs(value/unit-float64(time.Now().Unix())) < 86400 {
				s.times = append(s.times, names[c.Args[0]]+" "+n)
			}
		}
	}
	return link.Pass
}

// has says whether a script was sent.
func (s *smallest) has(script string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent[script]
}

// holds is what those who hold and wait do.
func (s *smallest) holds() {
	s.Helper()
	h, q := s.hold(s.here, terms{MaxHold: 2 * time.Hour}), s.holdQueue(s.there, terms{}, 1)
	_, err := s.here.try(s.ctx, terms{})
	require.ErrorIs(s, err, berth.ErrBusy)
	require.Len(s, s.reader.Holders(s.kind, s.name()), 1)
	require.Len(s, s.reader.Waiters(s.kind, s.name()), 1)
	require.NoError(s, h.Renew(s.ctx))
	s.release(h)
	h = q.Wait(s.world)
	token, err := h.Detach(s.ctx)
	require.NoError(s, err)
	h, err = s.here.resume(s.ctx, token)
	require.NoError(s, err)
	s.release(h)
}

// operates is what operators do.
func (s *smallest) operates() {
	s.Helper()
	ops := s.there.Operator()
	h := s.hold(s.here, terms{})
	wanted := h.Wanted()
	s.subscribed(s.here.Node)
	_, err := ops.Want(s.ctx, s.target(h))
	require.NoError(s, err)
	s.Signalled("the holder to hear", wanted)
	require.NoError(s, ops.Pause(s.ctx, s.kind, s.name(), time.Hour, "why"))
	require.NoError(s, ops.Unpause(s.ctx, s.kind, s.name()))
	for _, target := range []berth.Target{s.target(h), {Node: s.here.ID()}} {
		if target.Node != "" { // as the page says, what goes through all names needs more
			s.do("ACL", "SETUSER", "smallest", "+scan")
			require.Len(s, s.reader.Names(s.kind), 1)
		}
		count, err := ops.Release(s.ctx, target)
		require.NoError(s, err)
		require.Equal(s, 1, count)
		s.ended(h, berth.ErrReleased)
		h = s.hold(s.here, terms{})
	}
	s.release(h)
	_, err = ops.Sweep(s.ctx, s.kind, s.name())
	require.NoError(s, err)
	require.Zero(s, s.reader.Look(s.kind, s.name()).Held)
}

// ofLocks is what only locks do.
func (s *smallest) ofLocks() {
	s.Helper()
	here, there := s.here.locks, s.there.locks
	l := s.lockFor(here, "me", nil)
	inner := s.lockFor(here, "me", &qlock.LockOptions{Conflict: qlock.ExtendAndWorkThrough, Lease: time.Second})
	worked := s.lockFor(there, "me", &qlock.LockOptions{Conflict: qlock.WorkThrough})
	_, err := there.Lock(berth.WithOwner(s.ctx, "me"), door, nil)
	require.ErrorIs(s, err, berth.ErrDeadlock)
	_, err = there.TryLock(s.ctx, door, &qlock.LockOptions{DetailedErrors: true})
	require.ErrorIs(s, err, berth.ErrBusy)
	var refusal *berth.AcquireError
	require.ErrorAs(s, err, &refusal)
	require.Len(s, refusal.Holders, 3, "who holds could not be asked")
	require.NoError(s, l.Extend(s.ctx, time.Second))
	require.NoError(s, qlock.NewOperator(there.Node).Extend(s.ctx, door, time.Second))
	s.release(worked, inner)
	q := testkit.Begin(s.ctx, func(ctx context.Context) (*qlock.Lock, error) {
		return there.Lock(ctx, door, &qlock.LockOptions{Access: qlock.Random, RequeueEvery: 100 * time.Millisecond})
	})
	s.awaitInLine(door, 1, q.Over)
	ticket := s.look(door).state["ticket"]
	s.Await("it goes to the end of the line", func() bool { return s.look(door).state["ticket"] > ticket })
	s.release(l)
	q.Wait(s.world)
	_, err = here.Operator().Release(s.ctx, berth.Target{Kind: keyspace.Lock, Name: door})
	require.NoError(s, err)
	s.ended(q.Got, berth.ErrReleased)
}

// ofSwarms is what nodes of a swarm do.
func (s *smallest) ofSwarms() {
	s.Helper()
	for _, u := range []*user{s.here, s.there} {
		require.NoError(s, u.Swarm().Start(s.ctx))
		require.NoError(s, u.Swarm().ProbeNow(s.ctx))
	}
	endless := s.hold(s.here, terms{Lease: berth.Forever})
	s.Await("a flush has asked for its node", func() bool {
		_, err := s.there.Swarm().FlushNow(s.ctx)
		require.NoError(s, err)
		return s.has("swarm_expect")
	})
	nodes := 0
	for _, err := range s.there.Swarm().Info(s.ctx) {
		require.NoError(s, err)
		nodes++
	}
	require.Equal(s, 2, nodes)
	s.release(endless)
	for _, u := range []*user{s.here, s.there} {
		require.NoError(s, u.Swarm().Status().Err)
		require.NoError(s, u.Swarm().Stop(s.ctx))
	}
	require.True(s, s.has("swarm_probe") && s.has("swarm_leave"))
}

// guards has a guard compare fences, exactly, also those that a number of Lua cannot be.
func (s *smallest) guards() {
	s.Helper()
	g := s.guard(s.redis)
	for _, number := range []int64{9, 10, 1<<53 - 1, 1 << 53, 1<<53 + 1, math.MaxInt64} {
		require.NoError(s, g.Admit(s.ctx, "x", number))
		require.ErrorIs(s, g.Admit(s.ctx, "x", number-1), fence.ErrStale)
	}
	require.NoError(s, g.Forget(s.ctx, "x", math.MaxInt64))
	require.NoError(s, g.Admit(s.ctx, "x", 1))
}

// ofPools is what only pools do.
func (s *smallest) ofPools() {
	s.Helper()
	must := func(_ any, err error) {
		s.Helper()
		require.NoError(s, err)
	}
	there := s.there.pool
	for _, err := range there.FreeInOrder(s.ctx) {
		require.NoError(s, err)
	}
	sourced := s.proxies(s.nodeOn(s.redis, node.Config{Lease: time.Hour}), poolConfig{
		Policy: allocator.Random, Cooldown: 20 * time.Millisecond,
		Source: func(context.Context) ([]string, error) { return []string{"a"}, nil },
	})
	s.Await("the pool is emptied, beside the first round of the source", func() bool {
		_, err := there.Clear(s.ctx)
		require.True(s, err == nil || errors.Is(err, berth.ErrOvertaken), err)
		return err == nil
	})
	must(sourced.Refresh(s.ctx))
	a := s.allocate(sourced, &allocator.AllocateOptions{Bind: "customer"}) // by the source
	s.Await("more is added, behind what the source has filled in", func() bool {
		_, err := there.Add(s.ctx, []string{"b", "c"}, &allocator.AddOptions{Expiry: time.Hour})
		require.True(s, err == nil || errors.Is(err, berth.ErrOvertaken), err)
		return err == nil
	})
	require.NoError(s, a.Swap(s.ctx))
	require.NoError(s, there.Rest(s.ctx, "a", time.Hour, "429", nil))
	require.NoError(s, there.Rest(s.ctx, "a", 0, "", nil))
	require.NoError(s, there.Bind(s.ctx, "customer", "b", nil))
	must(there.Binding(s.ctx, "customer"))
	for _, err := range there.ops.Bindings(s.ctx, proxies) {
		require.NoError(s, err)
	}
	require.NoError(s, there.Unbind(s.ctx, "customer"))
	for _, err := range there.ops.Resources(s.ctx, proxies) {
		require.NoError(s, err)
	}
	must(there.node.Operator().Sweep(s.ctx, ""))
	must(sourced.CheckHealth(s.ctx, 2))
	s.release(a)
	s.Await("all is replaced, beside a round of the source", func() bool {
		_, err := there.Replace(s.ctx, []string{"a", "b"}, nil)
		require.True(s, err == nil || errors.Is(err, berth.ErrOvertaken), err)
		return err == nil
	})
	must(sourced.Refresh(s.ctx))
	s.release(s.allocate(sourced, nil))
	s.Await("it has rested", func() bool {
		n := s.reader.Look(keyspace.Pool, proxies)
		return n.Pool.Free == n.Capacity
	})
	must(there.Remove(s.ctx, []string{"a"}))
	s.inspected(there)
	require.NoError(s, there.ops.Set(s.ctx, proxies, "", allocator.Settings{MaxSharers: 2}))
	require.NoError(s, there.ops.Set(s.ctx, proxies, "", allocator.Settings{Reset: true}))
	require.NoError(s, sourced.node.Close(s.ctx)) // else its source fills the pool again, whenever it is empty
	must(there.Clear(s.ctx))
}

// isRestored has one of those who wait be forgotten by the server.
func (s *smallest) isRestored() {
	s.Helper()
	cfg := node.Config{Lease: safe}
	here, there := s.useOn(s.redis, cfg), s.useOn(s.redis, cfg)
	h, q := s.hold(here, terms{}), s.holdQueue(there, terms{}, 1)
	s.forget(s.name())
	if s.kind == keyspace.Pool {
		s.Await("it stands in line again", func() bool { return s.look(proxies).waiting() == 1 || q.Over() })
		s.add(here.pool, "r0")
	}
	s.release(q.Wait(s.world))
	s.ended(h, berth.ErrLost)
	s.nothingLeft(here) // but a tombstone, of a restore that was slow to be answered
}

// Without PUBLISH a waiter hears of its grant with its next heartbeat, and
// nothing else is different.
func TestAUserWhoMayNotPublish(t *testing.T) {
	t.Parallel()
	overKinds(t, alone, func(w *world) {
		user := w.server.SmallestUser(w.T, w.ns)
		w.do("ACL", "SETUSER", "smallest", "-publish")
		cfg := node.Config{Lease: safe}
		here, there := w.use(cfg, user), w.use(cfg, user)
		report, err := here.Check(w.Within(patience))
		require.NoError(w, err)
		require.Contains(w, report.Warnings[len(report.Warnings)-1], "PUBLISH is refused")
		for _, pass := range []func(h berth.Hold){
			func(h berth.Hold) { w.release(h) },
			func(h berth.Hold) {
				_, err := here.Operator().Release(w.Within(patience), w.target(h))
				require.NoError(w, err)
			},
		} {
			h := w.hold(here, terms{})
			q := w.holdQueue(there, terms{}, 1)
			pass(h)
			w.release(q.Wait(w))
		}
		// A holder is swept without pushes, too.
		dead := w.spawn(safe)
		dead.acquire(w.name(), 1)
		q := w.holdQueue(there, terms{}, 1)
		dead.kill()
		w.release(q.Wait(w))
		if p := here.pool; p != nil { // what is added is handed on, too
			a := w.allocate(p, nil)
			q := w.holdQueue(there, terms{}, 1)
			w.add(p, "r1")
			w.release(q.Wait(w), a)
			_, err := p.Remove(w.Within(patience), []string{"r1"})
			require.NoError(w, err)
		}
		w.nothingLeft(here)
	})
}

// The rules that docs/operations.md adds for a Cluster are enough for one, also while
// a slot moves.
func TestTheSmallestUserOfACluster(t *testing.T) {
	w, d := cluster(t)
	var user func(*rueidis.ClientOption)
	for _, server := range d.Servers() {
		user = server.SmallestUser(t, w.ns, "+cluster|slots", "+cluster|shards", "+asking")
	}
	here, there := w.nodeOn(d.Client(t, user), node.Config{}), w.nodeOn(d.Client(t, user), node.Config{})
	p := w.take(w.sem(here, "gpu", 2), &semaphore.AcquireOptions{Weight: 2})
	move := d.Move(t, "{gpu}")
	move.Keys(t) // from here on the old master answers ASK
	q := w.queue(w.sem(there, "gpu", 2), nil, 1)
	move.Finish(t)
	require.NoError(t, p.Release(w.Within(patience)))
	require.NoError(t, q.Wait(w).Release(w.Within(patience)))
}

// What docs/operations.md says that a user of one namespace can and cannot do to others.
func TestWhatAUserCanDoToOthers(t *testing.T) {
	w := private(t)
	user := w.server.SmallestUser(t, w.ns, "+scan")
	c := w.server.Client(t, user)
	call := func(words ...string) rueidis.RedisResult {
		return c.Do(w.Within(patience), c.B().Arbitrary(words...).Build())
	}
	const of, under = "other", ":prod"
	key, channel := of+":sem:{x}:state", of+":wake:n"
	w.do("HSET", key, "f", "theirs")
	w.do("HSET", w.ns+under+":sem:{x}:state", "f", "theirs")

	for name, words := range map[string][]string{
		"read a key":        {"HGET", key, "f"},
		"write a key":       {"HSET", key, "f", "mine"},
		"drop a key":        {"UNLINK", key},
		"read by a script":  {"EVAL", `return redis.call("HGET", KEYS[1], "f")`, "1", key},
		"publish":           {"PUBLISH", channel, "x"},
		"watch":             {"MONITOR"},
		"read the slow log": {"SLOWLOG", "GET"},
		"drop everything":   {"FLUSHALL"},
		"end scripts":       {"SCRIPT", "KILL"},
		"end the server":    {"SHUTDOWN", "NOSAVE"},
		"change the rules":  {"ACL", "SETUSER", "smallest", "~*"},
		"list by a pattern": {"KEYS", "*"},
	} {
		require.ErrorContains(t, call(words...).Error(), "NOPERM", name)
	}
	err := call("EVAL", `return redis.call("PUBLISH", ARGV[1], "x")`, "0", channel).Error()
	require.ErrorContains(t, err, "can't publish", "publish by a script")
	err = call("EVAL", `return redis.call("HSET", ARGV[1], "f", "mine")`, "0", key).Error()
	require.ErrorContains(t, err, "can't access", "write a key that is not declared")
	err = c.Receive(w.Within(patience), c.B().Subscribe().Channel(channel).Build(), func(rueidis.PubSubMessage) {})
	require.ErrorContains(t, err, "NOPERM", "subscribe")

	seen, err := call("HGET", w.ns+under+":sem:{x}:state", "f").ToString()
	require.NoError(t, err)
	require.Equal(t, "theirs", seen, "a namespace that begins with its own and a colon")
	page, err := call("SCAN", "0", "COUNT", "1000").AsScanEntry()
	require.NoError(t, err)
	require.Contains(t, page.Elements, key, "names of all namespaces")
}

// Without +scan nobody finds what a dead node holds, so it is not condemned either. The nodes are listed all the same.
// With it the smallest user too condemns and flushes.
func TestTheSmallestUserFlushesADeadNode(t *testing.T) {
	w := private(t).of(keyspace.Lock)
	here := w.use(node.Config{Swarm: watching()}, w.server.SmallestUser(t, w.ns))
	dead, held := w.member()
	q := w.holdQueue(here, terms{}, 1)
	dead.kill()
	seen := func() (found node.SwarmNode) {
		for n, err := range here.Swarm().Info(w.Within(patience)) {
			require.NoError(t, err)
			require.Equal(t, held.Node, n.Node)
			found = n
		}
		return found
	}
	w.Await("it is dead", func() bool { return seen().Zombie })
	flushed, err := here.Swarm().FlushNow(w.Within(patience))
	require.ErrorContains(t, err, "NOPERM")
	require.Zero(t, flushed)
	require.False(t, seen().Condemned)
	_, err = here.Swarm().Zombies(w.Within(patience))
	require.ErrorContains(t, err, "NOPERM")
	require.False(t, q.Over())

	w.do("ACL", "SETUSER", "smallest", "+scan")
	w.do("ACL", "LOG", "RESET")
	require.NoError(t, here.Swarm().Start(w.Within(patience)))
	w.release(q.Wait(w))
	require.Empty(t, w.refusals(), "commands that the user may not run")
}

// refusals are what the server has refused a user of it, but for what rueidis asks
// for when it connects and Check does without.
func (w *world) refusals() (all []string) {
	w.Helper()
	entries, err := w.do("ACL", "LOG").ToArray()
	require.NoError(w, err)
	for _, entry := range entries {
		fields, err := entry.AsMap()
		require.NoError(w, err)
		object, reason := fields["object"], fields["reason"]
		what, err := object.ToString()
		require.NoError(w, err)
		why, err := reason.ToString()
		require.NoError(w, err)
		if !slices.Contains([]string{"info", "config|get", "client|tracking", "client|setinfo", "client|no-evict", "client|list", "cluster|slots"}, what) {
			all = append(all, why+" "+what)
		}
	}
	return all
}

// guard is a guard on a connection.
func (w *world) guard(redis rueidis.Client) *fence.Redis {
	w.Helper()
	g, err := fence.NewRedis(redis, fence.RedisConfig{Namespace: w.ns})
	require.NoError(w, err)
	return g
}
