package app_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/backup"
	"github.com/berth-go/berth/internal/testkit/mutate"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/console"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/once"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

// Whoever may write the namespace changes what is stored: nothing that reads it panics or hangs, and nobody gets a name
// that was not changed.
var (
	mutatedStates = flag.Int("mutated", 30, "how many mutated states are tried")
	mutatedSeed   = flag.Uint64("mutated.seed", 0, "the first of their seeds; 0 draws one")
	mutatedRedis  = flag.String("mutated.redis", "", "the URL of a real server to try them on, of which everything is deleted")
)

const (
	// changed is the name that is changed in each kind, calm the one that is not.
	changed, calm = "gpu", "calm"
	// soon bounds each call on a mutated state.
	soon = time.Minute
)

var mutatedKinds = []keyspace.Kind{keyspace.Sem, keyspace.Lock, keyspace.Pool}

// mutated is a server with mutated states, and who uses it.
type mutated struct {
	t     *testing.T
	r     *rand.Rand
	url   string
	redis rueidis.Client
	base  backup.Copy
	keys  []string // that may change
	calm  string   // all that is stored of the names that do not change
	look  *inspect.Reader
	page  *console.Console
	n     *node.Node // that of sem, locks, pool and job
	sem   *semaphore.Semaphore
	locks *qlock.Locks
	pool  *allocator.Pool[string]
	job   *once.Job
	claim string // of a lock in the base
}

// stored makes a server on which each kind has names that are held and waited for, and copies what it has.
func stored(t *testing.T) backup.Copy {
	t.Helper()
	ctx, s, lease := context.Background(), apptest.Server(t), 20*time.Hour
	first := apptest.NodeOf(t, s, node.Config{Lease: lease, Label: "host/one/1"})
	locks, others := apptest.LocksOf(t, s, node.Config{Lease: lease}), apptest.LocksOf(t, s, node.Config{Lease: lease})
	waits := func(f func(ctx context.Context) error) { go func() { _ = f(ctx) }() }
	for _, name := range []string{changed, calm} {
		sem := semaphore.New(first, name, 2, semaphore.Config{})
		apptest.Got(sem.Acquire(ctx, &semaphore.AcquireOptions{Weight: 2, Meta: map[string]string{"build": "7"}}))(t)
		apptest.Got(locks.Lock(berth.WithOwner(ctx, "me"), name, nil))(t)
		pool := apptest.PoolOf(t, s, name, node.Config{Lease: lease})
		apptest.Got(pool.Add(ctx, []string{"a", "b"}, nil))(t)
		require.NoError(t, pool.Bind(ctx, "me", "a", nil))
		apptest.Got(pool.Allocate(ctx, &allocator.AllocateOptions{Bind: "me"}))(t)
		require.NoError(t, pool.Rest(ctx, "b", 20*time.Hour, "tired", nil))
		for i := range 3 {
			waits(func(ctx context.Context) error {
				return testkit.Second(sem.Acquire(ctx, &semaphore.AcquireOptions{Priority: i}))
			})
			waits(func(ctx context.Context) error { return testkit.Second(others.Lock(ctx, name, nil)) })
		}
		waits(func(ctx context.Context) error {
			return testkit.Second(pool.Allocate(ctx, &allocator.AllocateOptions{Bind: "me", BindWait: time.Hour}))
		})
		waits(func(ctx context.Context) error { return testkit.Second(pool.Allocate(ctx, nil)) })
		for kind, n := range map[keyspace.Kind]int{keyspace.Sem: 3, keyspace.Lock: 3, keyspace.Pool: 2} {
			require.Eventually(t, func() bool { return apptest.Waiting(t, s, kind, name) == n }, apptest.Patience, 10*time.Millisecond)
		}
		apptest.Got(locks.Lock(berth.WithOwner(ctx, "me"), name, &qlock.LockOptions{Conflict: qlock.WorkThrough}))(t)
	}
	apptest.Got(locks.Lock(ctx, "thin", nil))(t)
	_, err := once.New(first, "job", once.Config{Every: 24 * time.Hour}).Do(ctx, func(context.Context, *once.Run) error { return nil })
	require.NoError(t, err)
	sentry := apptest.LocksOf(t, s, node.Config{Lease: lease})
	apptest.Got(sentry.Lock(ctx, "watched", nil))(t)
	require.NoError(t, sentry.Swarm().Start(ctx)) // it dies, as nothing probes for it where the copy is
	redis := mutatedClient(t, s.URL())
	base := apptest.Got(backup.Take(ctx, redis))(t)
	return base
}

func mutatedClient(t *testing.T, url string) rueidis.Client {
	t.Helper()
	o := apptest.Got(rueidis.ParseURL(url))(t)
	o.DisableCache = true
	apptest.Patiently(&o)
	redis := apptest.Got(rueidis.NewClient(o))(t)
	t.Cleanup(redis.Close)
	return redis
}

func newMutated(t *testing.T) *mutated {
	t.Helper()
	m := &mutated{t: t, url: *mutatedRedis}
	if m.url == "" {
		m.url = apptest.Server(t).URL()
	}
	m.redis = mutatedClient(t, m.url)
	m.base = stored(t)
	m.restore()
	ctx := context.Background()
	keys := apptest.Got(m.redis.Do(ctx, m.redis.B().Keys().Pattern("*").Build()).AsStrSlice())(t)
	m.keys = slices.DeleteFunc(keys, func(key string) bool { return strings.Contains(key, "{"+calm+"}") || strings.Contains(key, ":notice:") })
	slices.Sort(m.keys)
	m.calm = m.dump()
	require.NotEmpty(t, m.calm)

	redis := mutatedClient(t, m.url)
	var errs [3]error
	m.look, errs[0] = inspect.New(redis, inspect.Config{})
	m.n, errs[1] = node.New(redis, node.Config{Lease: time.Hour})
	m.page, errs[2] = console.New(console.Config{Redis: redis})
	require.NoError(t, errors.Join(errs[:]...))
	m.sem, m.locks = semaphore.New(m.n, changed, 2, semaphore.Config{}), qlock.New(m.n, qlock.Config{Lease: time.Hour})
	m.pool = allocator.New(m.n, changed, allocator.Config[string]{})
	m.job = once.New(m.n, "job", once.Config{Every: 24 * time.Hour, Lease: time.Hour})
	held := apptest.Got(m.look.Holders(ctx, keyspace.Lock, changed, "", 1))(t)
	m.claim = held.Items[0].ID
	t.Cleanup(func() {
		m.restore()
		ctx, cancel := context.WithTimeout(ctx, soon)
		defer cancel()
		_ = errors.Join(m.page.Close(ctx), m.n.Close(ctx))
	})
	return m
}

func (m *mutated) restore() { require.NoError(m.t, m.base.Restore(context.Background(), m.redis)) }

// dump is all that is stored of the names that do not change.
func (m *mutated) dump() string {
	m.t.Helper()
	ctx, all := context.Background(), ""
	for _, kind := range mutatedKinds {
		key := "berth:" + string(kind) + ":{" + calm + "}:"
		fields := apptest.Got(m.redis.Do(ctx, m.redis.B().Hgetall().Key(key+"state").Build()).AsStrMap())(m.t)
		line, err := m.redis.Do(ctx, m.redis.B().Zrange().Key(key+"line").Min("0").Max("-1").Withscores().Build()).AsZScores()
		require.NoError(m.t, err)
		all += fmt.Sprint(fields, line)
	}
	return all
}

// call is one that reads or changes a mutated state. Its error says what is damaged.
type call struct {
	what string
	do   func(ctx context.Context) error
}

// looks are the calls of who only looks.
func (m *mutated) looks() (all []call) {
	for _, kind := range mutatedKinds {
		name := changed
		if kind == keyspace.Lock && m.r.IntN(3) == 0 {
			name = "thin"
		}
		all = append(all,
			call{"Name", func(ctx context.Context) error { return testkit.Second(m.look.Name(ctx, kind, name)) }},
			call{"Explain", func(ctx context.Context) error { return testkit.Second(m.look.Explain(ctx, kind, name, "")) }},
			call{"Explain claim", func(ctx context.Context) error {
				return testkit.Second(m.look.Explain(ctx, kind, name, m.claim))
			}},
			call{"Holders", func(ctx context.Context) error {
				return testkit.Second(m.look.Holders(ctx, kind, name, "", 2))
			}},
			call{"Waiters", func(ctx context.Context) error { return m.pagesOf(ctx, kind, name) }},
			call{"View", func(ctx context.Context) error {
				v, err := m.look.View(kind, name)
				for n := 0; n < 2 && err == nil; n++ {
					_, err = v.Read(ctx, m.claim)
				}
				return err
			}})
	}
	pools := allocator.NewOperator(m.n)
	return append(all,
		call{"Names", func(ctx context.Context) error {
			return testkit.Second(m.look.Names(ctx, inspect.NameFilter{Kinds: []keyspace.Kind{keyspace.Sem, keyspace.Lock, keyspace.Pool, keyspace.Once}, Idle: true}, "", 0))
		}},
		call{"Waiting", func(ctx context.Context) error {
			return testkit.Second(m.look.Names(ctx, inspect.NameFilter{Waiting: true}, "", 0))
		}},
		call{"Claims", func(ctx context.Context) error {
			return testkit.Second(m.look.Claims(ctx, inspect.ClaimFilter{}, "", 0))
		}},
		call{"Cycles", func(ctx context.Context) error {
			return testkit.Second(m.look.Cycles(ctx, nil))
		}},
		call{"Last", func(ctx context.Context) error { return testkit.Second(m.job.Last(ctx)) }},
		call{"Zombies", func(ctx context.Context) error { return testkit.Second(m.n.Swarm().Zombies(ctx)) }},
		call{"Info", func(ctx context.Context) error { return firstError(m.n.Swarm().Info(ctx)) }},
		call{"Resources", func(ctx context.Context) error { return firstError(pools.Resources(ctx, changed)) }},
		call{"Bindings", func(ctx context.Context) error { return firstError(pools.Bindings(ctx, changed)) }},
		call{"Inspect", func(ctx context.Context) error { return testkit.Second(pools.Inspect(ctx, changed)) }},
	)
}

// firstError goes through all until one fails.
func firstError[E any](found iter.Seq2[E, error]) error {
	for _, err := range found {
		if err != nil {
			return err
		}
	}
	return nil
}

// pagesOf reads the waiting claims page by page: there are not more than were stored, so the pages end.
func (m *mutated) pagesOf(ctx context.Context, kind keyspace.Kind, name string) error {
	for from, n := "", 0; ; n++ {
		require.Less(m.t, n, 100, "the pages of %s %s end", kind, name)
		page, err := m.look.Waiters(ctx, kind, name, from, 1)
		if from = page.Next; err != nil || from == "" {
			return err
		}
	}
}

// acts are calls that change the name, and those of what does not change.
func (m *mutated) acts() []call {
	detail, lock := &semaphore.AcquireOptions{MaxWait: 20 * time.Millisecond}, &qlock.LockOptions{DetailedErrors: true, MaxWait: 20 * time.Millisecond}
	alloc := &allocator.AllocateOptions{MaxWait: 20 * time.Millisecond}
	ops := m.n.Operator()
	all := []call{
		{"Acquire", func(ctx context.Context) error { return ended(m.sem.Acquire(ctx, detail))(ctx) }},
		{"Lock", func(ctx context.Context) error { return ended(m.locks.Lock(ctx, changed, lock))(ctx) }},
		{"Allocate", func(ctx context.Context) error { return ended(m.pool.Allocate(ctx, alloc))(ctx) }},
		{"sem Want", func(ctx context.Context) error {
			return testkit.Second(ops.Want(ctx, berth.Target{Kind: keyspace.Sem, Name: changed}))
		}},
		{"lock Extend", func(ctx context.Context) error { return qlock.NewOperator(m.n).Extend(ctx, changed, time.Second) }},
		{"sem Pause", func(ctx context.Context) error { return ops.Pause(ctx, keyspace.Sem, changed, time.Minute, "why") }},
		{"Resize", func(ctx context.Context) error { return semaphore.NewOperator(m.n).Resize(ctx, changed, 3, nil) }},
		{"once Do", func(ctx context.Context) error {
			return testkit.Second(m.job.Do(ctx, func(context.Context, *once.Run) error { return nil }))
		}},
		{"flush", func(ctx context.Context) error { return testkit.Second(m.n.Swarm().FlushNow(ctx)) }},
	}
	releases := m.r.IntN(2) == 0
	for _, kind := range mutatedKinds {
		all = append(all, call{string(kind) + " Sweep", func(ctx context.Context) error {
			return testkit.Second(ops.Sweep(ctx, kind, changed))
		}})
		if releases {
			all = append(all, call{string(kind) + " Release", func(ctx context.Context) error {
				return testkit.Second(ops.Release(ctx, berth.Target{Kind: kind, Name: changed}))
			}})
		}
	}
	m.r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:4]
}

// ended gives back what a call got.
func ended(h berth.Handle, err error) func(ctx context.Context) error {
	if err != nil {
		return func(context.Context) error { return err }
	}
	return h.Release
}

// commands are what the command says of a mutated state, and the page.
func (m *mutated) commands() []call {
	var all []call
	for _, line := range []string{
		"ps", "sem ls", "lock ls", "pool ls", "sem show gpu", "lock show gpu", "pool show gpu --all", "pool inspect gpu",
		"sem explain gpu", "lock explain gpu", "pool explain gpu", "cycles", "node ls", "once ls", "leader ls", "once show job", "lock show thin", "lock show job",
	} {
		if m.r.IntN(2) == 0 {
			line += " --json"
		}
		args := strings.Fields(line)
		all = append(all, call{"berth " + line, func(context.Context) error {
			if got := apptest.Call(m.t, m.url, args...); got.Code != 0 {
				return errors.New(got.Err)
			}
			return nil
		}})
	}
	for _, path := range []string{"/", "/names", "/cycles", "/search?by=name&q=" + changed, "/name?kind=sem&name=" + changed, "/name?kind=lock&name=" + changed, "/name?kind=pool&name=" + changed} {
		all = append(all, call{"page " + path, func(ctx context.Context) error {
			w := httptest.NewRecorder()
			m.page.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "http://localhost"+path, nil))
			require.NotEqual(m.t, http.StatusNotFound, w.Code, path)
			require.Less(m.t, w.Body.Len(), 4<<20, "a page stays small: %s", path)
			return nil
		}})
	}
	m.r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:2]
}

// try mutates once, and has everybody look and act.
func (m *mutated) try(seed uint64, counts map[string]int) {
	m.r = rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // what is drawn is repeated by its seed
	m.restore()
	changes, err := mutate.Keys(context.Background(), m.r, m.redis, m.keys)
	where := fmt.Sprintf("-mutated=1 -mutated.seed=%d\n%s\n", seed, strings.Join(changes, "\n"))
	require.NoError(m.t, err, where)
	doing := ""
	defer func() {
		if v := recover(); v != nil {
			m.t.Fatalf("%s\n%s panics: %v\n%s", where, doing, v, debug.Stack())
		}
	}()
	for _, c := range slices.Concat(m.looks(), m.commands(), m.acts(), m.looks()[:6]) {
		doing = c.what
		ctx, cancel := context.WithTimeoutCause(context.Background(), soon, errors.New("it hangs"))
		began := time.Now()
		err := c.do(ctx)
		require.NoError(m.t, ctx.Err(), "%s\n%s hangs: %v", where, c.what, err)
		require.Less(m.t, time.Since(began), 2*soon, "%s\n%s", where, c.what)
		cancel()
		if counts["calls"]++; err != nil {
			counts["errors"]++
		}
	}
	now := m.dump()
	if now != m.calm {
		m.t.Fatalf("%s\n%s\n%s\nwhat was not touched is as it was, held and waited for by the same", where, m.calm, now)
	}
}

func TestAMutatedStateEndsNobodyAndGrantsNothingElse(t *testing.T) {
	t.Parallel()
	m, seed, counts := newMutated(t), *mutatedSeed, map[string]int{}
	if seed == 0 {
		seed = rand.Uint64() >> 1
	}
	for n := range *mutatedStates {
		if n%1000 == 0 {
			t.Logf("%s: %d states from seed %d: %v", time.Now().Format(time.TimeOnly), n, seed, counts)
		}
		m.try(seed+uint64(n), counts)
	}
	t.Logf("%d states from seed %d: %v", *mutatedStates, seed, counts)
	require.Greater(t, counts["calls"], counts["errors"])
}
