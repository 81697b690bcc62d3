package integration

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/leader"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/once"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
	"github.com/berth-go/berth/test/harness"
)

// trouble has all clients refused from begin to end. edit is for the options of each.
type trouble struct {
	edit       func(*rueidis.ClientOption)
	begin, end func()
}

// noSnapshot has writes refused, since a snapshot has failed.
func noSnapshot(w *world) trouble {
	return trouble{
		edit:  func(*rueidis.ClientOption) {},
		begin: func() { snapshots(w, false) },
		end:   func() { snapshots(w, true) },
	}
}

// newPassword gives the user of all clients another password, which they hear of at the end.
func newPassword(w *world) trouble {
	var password atomic.Pointer[string]
	known := func(text string) { password.Store(&text) }
	known("old")
	w.do("ACL", "SETUSER", "app", "on", ">old", "~*", "&*", "+@all")
	return trouble{
		edit: func(o *rueidis.ClientOption) {
			o.AuthCredentialsFn = func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
				return rueidis.AuthCredentials{Username: "app", Password: *password.Load()}, nil
			}
		},
		begin: func() {
			w.do("ACL", "SETUSER", "app", "resetpass", ">new")
			w.do("CLIENT", "KILL", "USER", "app") // connections that are there stay the user's
		},
		end: func() { known("new") },
	}
}

// party is a process, and how it takes what it contends for.
type party struct {
	// take waits without any bound, and returns what gives back, nil where somebody else has done it all.
	take func(ctx context.Context) (giveBack func() error, err error)
	// try asks for what is free.
	try func(ctx context.Context, name string) error
}

// taken is what gives back a hold.
func taken(w *world, hold berth.Hold, err error) (func() error, error) {
	if err != nil {
		return nil, err
	}
	return func() error { return hold.Release(w.Within(patience)) }, nil
}

// parties make a party of each package, by the settings that all of them share.
var parties = map[string]func(w *world, redis rueidis.Client, cfg qlock.Config) party{
	"semaphore": func(w *world, redis rueidis.Client, cfg qlock.Config) party {
		c := w.clientOn(redis, semaphore.Config{Lease: cfg.Lease, Retry: cfg.Retry, Observer: cfg.Observer})
		s := w.sem(c, "gpu", 1)
		return party{
			take: func(ctx context.Context) (func() error, error) {
				p, err := s.Acquire(ctx, nil)
				return taken(w, p, err)
			},
			try: func(ctx context.Context, name string) error {
				_, err := w.sem(c, name, 1).TryAcquire(ctx, nil)
				return err
			},
		}
	},
	"lock": func(w *world, redis rueidis.Client, cfg qlock.Config) party {
		c := w.lockerOn(redis, cfg)
		return party{
			take: func(ctx context.Context) (func() error, error) {
				l, err := c.Lock(ctx, door, nil)
				return taken(w, l, err)
			},
			try: func(ctx context.Context, name string) error { _, err := c.TryLock(ctx, name, nil); return err },
		}
	},
	"pool": func(w *world, redis rueidis.Client, cfg qlock.Config) party {
		c := w.poolerOn(redis, allocator.Config{Lease: cfg.Lease, Retry: cfg.Retry, Observer: cfg.Observer})
		p := w.proxies(c, poolConfig{})
		admin := w.pooler(allocator.Config{}) // its user is not that of all others
		for _, name := range []string{proxies, "first", "second"} {
			full, err := allocator.NewPool(admin, name, poolConfig{})
			require.NoError(w, err)
			_, err = full.Add(w.Within(patience), []string{"a"}, nil)
			require.NoError(w, err)
		}
		return party{
			take: func(ctx context.Context) (func() error, error) {
				a, err := p.Allocate(ctx, nil)
				return taken(w, a, err)
			},
			try: func(ctx context.Context, name string) error {
				free, err := allocator.NewPool(c, name, poolConfig{})
				require.NoError(w, err)
				_, err = free.TryAllocate(ctx, nil)
				return err
			},
		}
	},
	"once": func(w *world, redis rueidis.Client, cfg qlock.Config) party {
		cfg.Namespace, cfg.CallTimeout = w.ns, calls
		jobs, err := once.New(redis, cfg)
		require.NoError(w, err)
		w.closed(jobs.Close)
		return party{
			take: func(ctx context.Context) (func() error, error) {
				run, _, err := jobs.Begin(ctx, digest, once.Options{Every: 5000 * time.Hour, Wait: true})
				if run == nil {
					return nil, err
				}
				return func() error { return run.End(w.Within(patience), nil) }, err
			},
			try: func(ctx context.Context, name string) error {
				_, err := jobs.Do(ctx, name, once.Options{Every: 5000 * time.Hour}, nothing)
				return err
			},
		}
	},
	"leader": func(w *world, redis rueidis.Client, cfg qlock.Config) party {
		cfg.Namespace, cfg.CallTimeout = w.ns, calls
		c, err := leader.New(redis, cfg)
		require.NoError(w, err)
		w.closed(c.Close)
		return party{take: func(ctx context.Context) (func() error, error) {
			leads, resigns, over := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			go func() {
				over <- c.Run(ctx, boss, nil, func(term context.Context) error {
					close(leads)
					select {
					case <-resigns:
						return nil
					case <-term.Done():
						return context.Cause(term)
					}
				})
			}()
			select {
			case <-leads:
				return func() error { close(resigns); return <-over }, nil
			case err := <-over:
				return nil, err
			}
		}}
	},
}

// A refusal that passes by itself is silence, through every package: a wait without a bound stays in line, and
// whoever would not wait hears that the server is unavailable.
func TestWaitsOutlastRefusalsThatPass(t *testing.T) {
	t.Parallel()
	for what, troubled := range map[string]func(*world) trouble{"no snapshot": noSnapshot, "a new password": newPassword} {
		for name, join := range parties {
			t.Run(name+", "+what, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, harness.Single(t).Servers()[0])
				trouble := troubled(w)
				outlast(w, trouble, func(cfg qlock.Config) party { return join(w, w.server.Client(t, trouble.edit), cfg) })
			})
		}
	}
}

func outlast(w *world, t trouble, join func(qlock.Config) party) {
	w.Helper()
	var stands, refused, failed atomic.Bool
	watch := observe.Func(func(e observe.Event) {
		switch {
		case e.Kind == observe.Queued:
			stands.Store(true)
		case e.Kind == observe.Failed:
			failed.Store(true)
		case e.Kind == observe.Unavailable && e.Detail == "waits":
			refused.Store(true)
		}
	})
	give, err := join(qlock.Config{Lease: 2 * patience, Retry: heard}).take(w.Within(2 * patience))
	require.NoError(w, err)
	waiter := join(qlock.Config{Lease: safe, Retry: heard, Observer: watch})
	wait := testkit.Begin(w.Within(5*patience), waiter.take)
	goesOn := func() {
		w.Helper()
		if wait.Over() {
			require.FailNow(w, "the wait is over", "%v", wait.Err)
		}
		require.False(w, failed.Load(), "the wait was thrown out of line")
	}
	w.Await("the claim stands in line", func() bool { goesOn(); return stands.Load() })
	other := join(qlock.Config{Lease: safe, Retry: berth.Retry{Attempts: 3}})
	if other.try != nil {
		require.NoError(w, other.try(w.Within(patience), "first"))
	}
	t.begin()
	w.Await("the wait is refused", func() bool { goesOn(); return refused.Load() })
	if other.try != nil {
		require.ErrorIs(w, other.try(w.Within(patience), "second"), berth.ErrUnavailable)
	}
	goesOn()
	t.end()
	require.NoError(w, give())
	if give = wait.Wait(w); give != nil {
		require.NoError(w, give())
	}
	require.False(w, failed.Load(), "the wait was thrown out of line")
}

// A client that was never served has the wrong password: to wait would not help it.
func TestAWrongPasswordIsFinalAtTheFirstCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t, harness.Single(t).Servers()[0])
	rotates := newPassword(w)
	for name, join := range parties {
		if name == "leader" { // it stands again after any error
			continue
		}
		redis := w.server.Client(t, rotates.edit)
		rotates.begin()
		_, err := join(w, redis, qlock.Config{Retry: heard}).take(w.Within(patience))
		require.ErrorContains(t, err, "WRONGPASS", name)
		require.NotErrorIs(t, err, berth.ErrUnavailable, name)
		w.do("ACL", "SETUSER", "app", ">old")
	}
}

// rueidis would send a PING behind an UNSUBSCRIBE, and end the process where the answer is an error that it does not
// expect.
func TestAClientClosesWhileTheServerRefuses(t *testing.T) {
	t.Parallel()
	for what, begin := range map[string]func(w *world){
		"writes": func(w *world) { snapshots(w, false) },
		"all": func(w *world) {
			w.do("CONFIG", "SET", "replica-serve-stale-data", "no")
			w.do("REPLICAOF", "127.0.0.1", "1")
		},
	} {
		w := newWorld(t, harness.Single(t).Servers()[0])
		redis := w.server.Client(t)
		c, err := semaphore.New(redis, semaphore.Config{Namespace: w.ns, CallTimeout: calls, Retry: berth.Retry{Attempts: 1}})
		require.NoError(t, err)
		s := w.sem(c, "gpu", 1)
		p := w.take(s, nil)
		q := w.queue(s, nil, 1)
		w.Await("a subscription", func() bool { return w.subscriptions() == 1 })
		begin(w)
		_ = c.Close(w.Within(patience)) // what it holds cannot be given back
		require.Error(t, p.Err())
		q.Fails(w, berth.ErrClosed)
		require.NoError(t, redis.Do(w.Within(patience), redis.B().Time().Build()).Error(), what)
	}
}

// subscriptions are how many channels somebody listens to.
func (w *world) subscriptions() int {
	w.Helper()
	channels, err := w.do("PUBSUB", "CHANNELS").AsStrSlice()
	require.NoError(w, err)
	return len(channels)
}
