package integration

import (
	"sync/atomic"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
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

// A refusal that passes by itself is silence, to all kinds: a wait without a bound stays in line, and
// whoever would not wait hears that the server is unavailable.
func TestWaitsOutlastRefusalsThatPass(t *testing.T) {
	t.Parallel()
	for what, troubled := range map[string]func(*world) trouble{"no snapshot": noSnapshot, "a new password": newPassword} {
		for _, kind := range kinds {
			t.Run(kind+", "+what, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, harness.Single(t).Servers()[0])
				fills(w.Patient, w.admin, w.ns) // whose user is not that of all others
				trouble := troubled(w)
				outlast(w, kind, trouble, func(begin string, cfg node.Config) byKind {
					return byKindOf(w.node(cfg, trouble.edit), begin, cfg.Lease)
				})
			})
		}
	}
}

func outlast(w *world, kind string, t trouble, join func(string, node.Config) byKind) {
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
	held, err := join(the, node.Config{Lease: 2 * patience}).take[kind](w.Within(2 * patience))
	require.NoError(w, err)
	wait := testkit.Begin(w.Within(5*patience), join(the, node.Config{Lease: safe, Observer: watch}).take[kind])
	goesOn := func() {
		w.Helper()
		if wait.Over() {
			require.FailNow(w, "the wait is over", "%v", wait.Err)
		}
		require.False(w, failed.Load(), "the wait was thrown out of line")
	}
	w.Await("the claim stands in line", func() bool { goesOn(); return stands.Load() })
	try := join(free, node.Config{Lease: safe, Retry: berth.Retry{Attempts: 3}}).try[kind]
	other, err := try(w.Within(patience))
	require.NoError(w, err)
	require.NoError(w, other.Release(w.Within(patience)))
	t.begin()
	w.Await("the wait is refused", func() bool { goesOn(); return refused.Load() })
	_, err = try(w.Within(patience))
	require.ErrorIs(w, err, berth.ErrUnavailable)
	goesOn()
	t.end()
	require.NoError(w, held.Release(w.Within(patience)))
	require.NoError(w, wait.Wait(w).Release(w.Within(patience)))
	require.False(w, failed.Load(), "the wait was thrown out of line")
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
