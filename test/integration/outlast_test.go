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
	"github.com/berth-go/berth/pkg/leader"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/once"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/test/harness"
)

// trouble has all processes refused from begin to end. edit is for the options of each.
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

// newPassword gives the user of all processes another password, which they hear of at the end.
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

// parties make a party of each package, whose leases are as long as given.
var parties = map[string]func(w *world, n *node.Node, lease time.Duration) party{
	"semaphore": func(w *world, n *node.Node, _ time.Duration) party {
		s := w.sem(n, "gpu", 1)
		return party{
			take: func(ctx context.Context) (func() error, error) {
				p, err := s.Acquire(ctx, nil)
				return taken(w, p, err)
			},
			try: func(ctx context.Context, name string) error {
				_, err := w.sem(n, name, 1).TryAcquire(ctx, nil)
				return err
			},
		}
	},
	"lock": func(w *world, n *node.Node, lease time.Duration) party {
		c := qlock.New(n, &qlock.Config{Lease: lease})
		return party{
			take: func(ctx context.Context) (func() error, error) {
				l, err := c.Lock(ctx, door, nil)
				return taken(w, l, err)
			},
			try: func(ctx context.Context, name string) error { _, err := c.TryLock(ctx, name, nil); return err },
		}
	},
	"pool": func(w *world, n *node.Node, _ time.Duration) party {
		p := w.proxies(n, poolConfig{})
		admin := w.node(node.Config{}) // its user is not that of all others
		for _, name := range []string{proxies, "first", "second"} {
			w.add(poolOf(admin, name, poolConfig{}), "a")
		}
		return party{
			take: func(ctx context.Context) (func() error, error) {
				a, err := p.Allocate(ctx, nil)
				return taken(w, a, err)
			},
			try: func(ctx context.Context, name string) error {
				_, err := poolOf(n, name, poolConfig{}).TryAllocate(ctx, nil)
				return err
			},
		}
	},
	"once": func(w *world, n *node.Node, lease time.Duration) party {
		cfg := once.Config{Every: 5000 * time.Hour, Wait: true, Lease: lease}
		return party{
			take: func(ctx context.Context) (func() error, error) {
				run, _, err := once.New(n, digest, cfg).Begin(ctx)
				if run == nil {
					return nil, err
				}
				return func() error { return run.End(w.Within(patience), nil) }, err
			},
			try: func(ctx context.Context, name string) error {
				_, err := once.New(n, name, once.Config{Every: cfg.Every, Lease: lease}).Do(ctx, nothing)
				return err
			},
		}
	},
	"leader": func(_ *world, n *node.Node, lease time.Duration) party {
		e := leader.New(n, boss, &leader.Config{Lease: lease})
		return party{take: func(ctx context.Context) (func() error, error) {
			leads, resigns, over := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			go func() {
				over <- e.Run(ctx, func(term context.Context) error {
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
				outlast(w, trouble, func(cfg node.Config) party { return join(w, w.node(cfg, trouble.edit), cfg.Lease) })
			})
		}
	}
}

func outlast(w *world, t trouble, join func(node.Config) party) {
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
	give, err := join(node.Config{Lease: 2 * patience, Retry: heard}).take(w.Within(2 * patience))
	require.NoError(w, err)
	waiter := join(node.Config{Lease: safe, Retry: heard, Observer: watch})
	wait := testkit.Begin(w.Within(5*patience), waiter.take)
	goesOn := func() {
		w.Helper()
		if wait.Over() {
			require.FailNow(w, "the wait is over", "%v", wait.Err)
		}
		require.False(w, failed.Load(), "the wait was thrown out of line")
	}
	w.Await("the claim stands in line", func() bool { goesOn(); return stands.Load() })
	other := join(node.Config{Lease: safe, Retry: berth.Retry{Attempts: 3}})
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

// A process that was never served has the wrong password: to wait would not help it.
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
		_, err := join(w, w.nodeOn(redis, node.Config{}), time.Minute).take(w.Within(patience))
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
		n := w.nodeOn(redis, node.Config{Retry: berth.Retry{Attempts: 1}})
		s := w.sem(n, "gpu", 1)
		p := w.take(s, nil)
		q := w.queue(s, nil, 1)
		w.Await("a subscription", func() bool { return w.subscriptions() == 1 })
		begin(w)
		_ = n.Close(w.Within(patience)) // what it holds cannot be given back
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
