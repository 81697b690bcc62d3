// Package golden has a scene with names of all kinds, for tests of what is shown of them, and compares that with
// files in testdata. `go test -update` writes these files.
package golden

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/once"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

var update = flag.Bool("update", false, "write the golden files in testdata")

// In runs a test in the scene.
func In(t *testing.T, test func(w *testkit.World)) {
	t.Helper()
	testkit.In(t, "gpu", "berth:sem:{gpu}:state", "berth:sem:{gpu}:line", func(_ *testing.T, w *testkit.World) {
		s := &scene{w}
		s.semaphores()
		s.locks()
		s.pools()
		s.swarm()
		w.Until(4 * time.Second)
		test(w)
	})
}

// Compare compares a text with a file of testdata. The random ids in the text are numbered in the order in which they appear.
func Compare(t *testing.T, file, text string) {
	t.Helper()
	seen := make(map[string]string)
	count := make(map[string]int)
	text = ids.ReplaceAllStringFunc(text, func(id string) string {
		if strings.HasPrefix(id, "17672256") { // a fence: the time in µs, the same in each run
			return id
		}
		if seen[id] == "" {
			kind := cmp.Or(map[int]string{16: "node", 37: "claim"}[len(id)], "short")
			count[kind]++
			seen[id] = fmt.Sprintf("%s-%d", kind, count[kind])
		}
		return seen[id]
	})
	file = filepath.Join("testdata", file)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o750))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err, "go test -update writes it")
	require.Equal(t, string(want), text, "%s; go test -update writes it", file)
}

// ids are those of nodes, and of claims, also as pages shorten them.
var ids = regexp.MustCompile(`\b[0-9a-f]{16}(\.[0-9a-v]{20})?\b|\b[0-9a-f]{8}…[0-9a-v]{8}\b`)

// lease is so long that no heartbeat, whose moment is random, comes within the scene.
const lease = time.Minute

// step is how long each step takes, so that no order depends on an id.
const step = 50 * time.Millisecond

// scene plays in a world.
type scene struct{ *testkit.World }

// process is a node of the scene, and its locks.
type process struct {
	*testkit.Process
	*node.Node
	locks *qlock.Locks
}

func (s *scene) process(label string, cfg node.Config) *process {
	if cfg.Label = label; cfg.Lease == 0 {
		cfg.Lease = lease
	}
	p := s.Process()
	n := testkit.Must(node.New(p.Redis, cfg)).In(s.T)
	p.Closes(n.Close)
	return &process{p, n, qlock.New(n, qlock.Config{Lease: cfg.Lease})}
}

// did is what a call returned that must succeed.
func did[T any](s *scene, owner string, call func(ctx context.Context) (T, error)) T {
	got := testkit.Must(call(of(owner))).In(s.T)
	s.Advance(step)
	return got
}

// waits lets a claim stand in line until the end of the test.
func waits[T any](s *scene, owner string, acquire func(ctx context.Context) (T, error)) {
	testkit.RequirePending(s.T, testkit.Queue(of(owner), s.World, acquire))
	s.Advance(step)
}

// of is a context with an owner, "" for none.
func of(owner string) context.Context { return berth.WithOwner(context.Background(), owner) }

// wild is a key, and a part of an owner, that would harm a terminal, and that JSON cannot say.
const wild = "c\x1b[2J\xff"

// semaphores are one that is full, whose head asks for it, one that is paused, and one that is held without end.
func (s *scene) semaphores() {
	one, two := s.process("host-1/train", node.Config{}), s.process("host-2/train", node.Config{})
	permit := func(p *process, name string, o semaphore.AcquireOptions) func(context.Context) (*semaphore.Permit, error) {
		return func(ctx context.Context) (*semaphore.Permit, error) {
			return semaphore.New(p.Node, name, 3, semaphore.Config{}).Acquire(ctx, &o)
		}
	}
	did(s, "anna\x1b[2J", permit(one, "gpu", semaphore.AcquireOptions{Weight: 2, MaxHold: time.Hour, Meta: map[string]string{"job": "42"}}))
	did(s, "", permit(two, "gpu", semaphore.AcquireOptions{}))
	waits(s, "bert", permit(two, "gpu", semaphore.AcquireOptions{Priority: 7, WantAfter: time.Second}))
	waits(s, "", permit(one, "gpu", semaphore.AcquireOptions{Weight: 3}))
	require.NoError(s.T, one.Operator().Pause(context.Background(), keyspace.Sem, "paused", 2*time.Hour, "a\nmigration"))
	waits(s, "", permit(one, "paused", semaphore.AcquireOptions{}))
	did(s, "", permit(two, "disk", semaphore.AcquireOptions{Lease: berth.Forever}))
}

// locks are one that its owner has entered again, two whose holders wait for each other, one that is held without
// end, and two of jobs that run once in each period.
func (s *scene) locks() {
	one, two := s.process("host-1/cron", node.Config{}), s.process("host-2/cron", node.Config{})
	lock := func(p *process, name string, o qlock.LockOptions) func(context.Context) (*qlock.Lock, error) {
		return func(ctx context.Context) (*qlock.Lock, error) { return p.locks.Lock(ctx, name, &o) }
	}
	did(s, "order 66\x1b[2J", lock(one, "nightly", qlock.LockOptions{MaxHold: time.Hour, Meta: map[string]string{"step": "render"}}))
	did(s, "order 66\x1b[2J", lock(one, "nightly", qlock.LockOptions{Conflict: qlock.WorkThrough}))
	did(s, "order 66\x1b[2J", lock(one, "nightly", qlock.LockOptions{Conflict: qlock.ExtendAndWorkThrough, Lease: 10 * time.Second}))
	waits(s, "", lock(two, "nightly", qlock.LockOptions{MaxWait: time.Hour}))
	waits(s, "", lock(two, "nightly", qlock.LockOptions{Priority: 7}))
	did(s, "order-1", lock(one, "table-a", qlock.LockOptions{}))
	did(s, "order-2", lock(two, "table-b", qlock.LockOptions{}))
	waits(s, "order-1", lock(one, "table-b", qlock.LockOptions{}))
	waits(s, "order-2", lock(two, "table-a", qlock.LockOptions{}))
	did(s, "", lock(two, "migration", qlock.LockOptions{Lease: berth.Forever}))

	job := func(name string) *once.Run {
		run, _, err := once.New(one.Node, name, once.Config{Every: time.Hour, Offset: 2 * time.Second, Lease: lease}).Begin(context.Background())
		require.NoError(s.T, err)
		s.Advance(step)
		return run
	}
	require.NoError(s.T, job("digest").End(context.Background(), nil))
	require.NoError(s.T, job("report").End(context.Background(), errors.New("exit code 7")))
	s.Until(2 * time.Second) // another period
	goesOn := job("digest")
	s.T.Cleanup(func() { _ = goesOn.End(context.Background(), nil) })
}

// pools are one with a resource in each state, one that is full, and one that rests.
func (s *scene) pools() {
	one, two, ctx := s.process("host-1/crawl", node.Config{}), s.process("host-2/crawl", node.Config{}), context.Background()
	pool := func(p *process, name string) *allocator.Pool[string] {
		return allocator.New(p.Node, name, allocator.Config[string]{Cooldown: 30 * time.Second})
	}
	add := func(p *allocator.Pool[string], o allocator.AddOptions, resources ...string) {
		did(s, "", func(ctx context.Context) (allocator.Change, error) { return p.Add(ctx, resources, &o) })
	}
	allocate := func(p *allocator.Pool[string], o allocator.AllocateOptions) func(context.Context) (*allocator.Allocation[string], error) {
		return func(ctx context.Context) (*allocator.Allocation[string], error) { return p.Allocate(ctx, &o) }
	}
	first, second := pool(one, "proxies"), pool(two, "proxies")
	add(first, allocator.AddOptions{}, wild, "leaving", "bound", "resting", "damaged")
	add(first, allocator.AddOptions{Expiry: time.Hour}, "free")
	add(first, allocator.AddOptions{MaxSharers: 2}, "shared")
	did(s, "carl", allocate(first, allocator.AllocateOptions{Resource: wild, MaxHold: time.Hour, Meta: map[string]string{"step": "fetch"}}))
	did(s, "", allocate(first, allocator.AllocateOptions{Resource: "shared", Lease: berth.Forever}))
	did(s, "", allocate(first, allocator.AllocateOptions{Resource: "leaving"}))
	did(s, "", func(ctx context.Context) (allocator.Change, error) { return first.Remove(ctx, []string{"leaving"}) })
	require.NoError(s.T, first.Bind(ctx, "user-1", "bound", nil))
	did(s, "dora", allocate(second, allocator.AllocateOptions{Bind: "user-1"}))
	require.NoError(s.T, first.Rest(ctx, "bound", time.Hour, "tired", nil))
	require.NoError(s.T, first.Rest(ctx, "resting", 10*time.Minute, "answers\t429", nil))
	waits(s, "emil", allocate(second, allocator.AllocateOptions{Resource: wild}))
	waits(s, "", allocate(second, allocator.AllocateOptions{Bind: "user-1", BindWait: time.Minute}))
	s.Do("HSET", "berth:pool:{proxies}:items", "idamaged", "rubbish")

	full, rests := pool(one, "accounts"), pool(two, "mailboxes")
	add(full, allocator.AddOptions{}, "x")
	did(s, "", allocate(full, allocator.AllocateOptions{}))
	waits(s, "", allocate(pool(two, "accounts"), allocator.AllocateOptions{Priority: 7}))
	add(rests, allocator.AddOptions{}, "y")
	require.NoError(s.T, rests.Rest(ctx, "y", berth.Forever, "asks for a captcha", nil))
	waits(s, "", allocate(rests, allocator.AllocateOptions{}))
}

// swarm has a node that lives, and one that is dead, which holds a lock for an hour, and one that it would have renewed.
func (s *scene) swarm() {
	s.Until(2800 * time.Millisecond)
	live := s.process("host-1/swarm", node.Config{Swarm: node.SwarmConfig{ProbeEvery: time.Minute, ZombieAfter: time.Hour, FlushEvery: -1}})
	require.NoError(s.T, live.Swarm().Start(context.Background()))
	s.Advance(step)
	dead := s.process("host-2/\x1b[2J", node.Config{Lease: 1500 * time.Millisecond, Swarm: node.SwarmConfig{
		ProbeEvery: 500 * time.Millisecond, ZombieAfter: time.Second, FlushEvery: -1,
	}})
	require.NoError(s.T, dead.Swarm().Start(context.Background()))
	did(s, "", func(ctx context.Context) (*qlock.Lock, error) {
		return dead.locks.Lock(ctx, "deploy", &qlock.LockOptions{Lease: time.Hour, NoRenew: true})
	})
	backup := func(p *process) func(context.Context) (*qlock.Lock, error) {
		return func(ctx context.Context) (*qlock.Lock, error) { return p.locks.Lock(ctx, "backup", nil) }
	}
	did(s, "", backup(dead))
	dead.Die()
	waits(s, "", backup(live))
}
