package integration

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

// fill makes a private server so full that it refuses whatever needs memory, and
// goes on to do so when a little is freed.
func (w *world) fill() {
	w.Helper()
	used, err := strconv.Atoi(w.info("memory", "used_memory"))
	require.NoError(w, err)
	w.do("CONFIG", "SET", "maxmemory", strconv.Itoa(used+4<<20))
	junk := strings.Repeat("x", 64<<10)
	var full error
	for i := 0; full == nil; i++ {
		full = w.admin.Do(w.Within(patience), w.admin.B().Set().Key(fmt.Sprint("junk", i)).Value(junk).Build()).Error()
	}
	require.ErrorContains(w, full, "OOM")
	w.do("CONFIG", "SET", "maxmemory", strconv.Itoa(used+2<<20))
}

// ownLeaseRuns checks that a hold has its own lease, of an hour, and not a wait lease, of fullLease.
func (w *world) ownLeaseRuns(name, claim string) {
	w.Helper()
	require.Greater(w, w.look(name).holds[claim]-w.now(), (time.Hour / 2).Milliseconds(), "its own lease does not run")
}

// drained makes room again.
func (w *world) drained() {
	w.Helper()
	w.do("CONFIG", "SET", "maxmemory", "0")
}

// fullHouse is a server that is about to be full, and two nodes on it.
type fullHouse struct {
	*world
	here, there *node.Node
}

const fullLease = safe

// held takes the one place of a name.
func (f *fullHouse) held(name string, opts *semaphore.AcquireOptions) *semaphore.Permit {
	f.Helper()
	return f.take(f.sem(f.here, name, 1), opts)
}

// waits stands in line for the one place of a name.
func (f *fullHouse) waits(name string, opts *semaphore.AcquireOptions) *taking {
	f.Helper()
	return f.queue(f.sem(f.there, name, 1), opts, 1)
}

func (f *fullHouse) release(p *semaphore.Permit) {
	f.Helper()
	require.NoError(f, p.Release(f.Within(patience)))
}

// orFull checks that a call was answered, or refused by words that say why.
func (f *fullHouse) orFull(err error) {
	f.Helper()
	if err != nil {
		require.ErrorContains(f, err, "the server is full")
	}
	f.whole("gpu")
}

// inFullHouse are things that must work where nothing may grow. Each prepares,
// while there is room, a name of its own, and returns what is to happen then.
var inFullHouse = map[string]func(f *fullHouse, name string) func(){
	"an acquire is refused": func(f *fullHouse, name string) func() {
		return func() {
			for _, ask := range asks {
				_, err := ask(f.world, f.sem(f.here, name, 1))
				require.ErrorIs(f, err, berth.ErrNotAcquired)
				require.NotErrorIs(f, err, berth.ErrBusy)
				require.ErrorContains(f, err, "the server is full")
				require.Empty(f, f.look(name).expires, "it left keys")
			}
		}
	},
	"an acquire is refused in a name that is in use": func(f *fullHouse, name string) func() {
		p, q := f.held(name, nil), f.waits(name, nil)
		return func() {
			for _, ask := range asks {
				_, err := ask(f.world, f.sem(f.here, name, 1))
				require.ErrorIs(f, err, berth.ErrNotAcquired)
				v := f.whole(name)
				require.Len(f, v.holds, 1)
				require.Len(f, v.alive, 1)
			}
			f.release(p)
			f.release(q.Wait(f.world))
		}
	},
	"heartbeats keep holds and waiters": func(f *fullHouse, name string) func() {
		p, q := f.held(name, nil), f.waits(name, nil)
		return func() {
			before := f.look(name).holds[p.ID()]
			f.Await("a heartbeat", func() bool { return f.look(name).holds[p.ID()] > before })
			require.NoError(f, p.Err())
			require.False(f, q.Over())
			f.whole(name)
			f.release(p)
			f.release(q.Wait(f.world))
		}
	},
	"a fixed lease is renewed": func(f *fullHouse, name string) func() {
		p := f.held(name, &semaphore.AcquireOptions{NoRenew: true, Lease: time.Minute})
		before := f.look(name).holds[p.ID()]
		return func() {
			require.NoError(f, p.Renew(f.Within(patience)))
			require.Greater(f, f.look(name).holds[p.ID()], before)
			f.release(p)
		}
	},
	"a waiter leaves": func(f *fullHouse, name string) func() {
		p := f.held(name, nil)
		ctx, cancel := context.WithCancel(context.Background())
		q := f.beginWith(ctx, f.sem(f.there, name, 1), nil)
		f.Await("it waits", func() bool { return f.look(name).waiting() == 1 })
		return func() {
			cancel()
			f.Signalled("the caller to be let go", q.Done)
			f.Await("it has left the line", func() bool { return f.look(name).waiting() == 0 })
			f.release(p)
		}
	},
	"a grant is confirmed": func(f *fullHouse, name string) func() {
		p, q := f.held(name, nil), f.waits(name, &semaphore.AcquireOptions{NoRenew: true, Lease: time.Hour})
		return func() {
			f.release(p)
			p = q.Wait(f.world)
			f.ownLeaseRuns(name, p.ID())
			f.release(p)
		}
	},
	"a dead holder is swept": func(f *fullHouse, name string) func() {
		holder := f.spawn(fullLease)
		holder.acquire(name, 1)
		q := f.waits(name, nil)
		return func() {
			holder.kill()
			f.release(q.Wait(f.world))
		}
	},
	"a resize grants": func(f *fullHouse, name string) func() {
		p, q := f.held(name, nil), f.waits(name, nil)
		return func() {
			require.NoError(f, semaphore.NewOperator(f.here).Resize(f.Within(patience), name, 2, nil))
			f.release(q.Wait(f.world))
			f.release(p)
		}
	},
	"an operator releases": func(f *fullHouse, name string) func() {
		p, q := f.held(name, nil), f.waits(name, nil)
		return func() {
			_, err := f.here.Operator().Release(f.Within(patience), berth.Target{Kind: keyspace.Sem, Name: name, Claim: p.ID()})
			require.NoError(f, err)
			f.release(q.Wait(f.world))
			f.Signalled("the holder to hear", p.Done())
			require.ErrorIs(f, p.Err(), berth.ErrReleased)
		}
	},
	"a hold is wanted back": func(f *fullHouse, name string) func() {
		p, q := f.held(name, nil), f.waits(name, nil)
		asked := p.Wanted() // its node listens from here on
		return func() {
			_, err := f.here.Operator().Want(f.Within(patience), berth.Target{Kind: keyspace.Sem, Name: name, Claim: p.ID()})
			require.NoError(f, err)
			f.Signalled("the holder to hear", asked)
			f.whole(name)
			f.release(p)
			f.release(q.Wait(f.world))
		}
	},
	"a hold of a thin name is wanted back, or that is refused": func(f *fullHouse, name string) func() {
		p := f.held(name, nil)
		return func() {
			_, err := f.here.Operator().Want(f.Within(patience), berth.Target{Kind: keyspace.Sem, Name: name, Claim: p.ID()})
			f.orFull(err)
			require.NoError(f, p.Renew(f.Within(patience)))
			f.release(p)
		}
	},
	"a name is paused and that is ended": func(f *fullHouse, name string) func() {
		p, q := f.held(name, nil), f.waits(name, nil)
		return func() {
			ops := f.here.Operator()
			require.NoError(f, ops.Pause(f.Within(patience), keyspace.Sem, name, time.Hour, "full"))
			f.release(p)
			require.NoError(f, ops.Pause(f.Within(patience), keyspace.Sem, name, time.Hour, "again"))
			require.False(f, q.Over())
			require.NoError(f, ops.Unpause(f.Within(patience), keyspace.Sem, name))
			f.release(q.Wait(f.world))
		}
	},
	"an idle name is paused, or that is refused": func(f *fullHouse, name string) func() {
		return func() {
			f.orFull(f.here.Operator().Pause(f.Within(patience), keyspace.Sem, name, time.Minute, "full"))
			f.orFull(f.here.Operator().Unpause(f.Within(patience), keyspace.Sem, name))
		}
	},
	"a pause ends by itself": func(f *fullHouse, name string) func() {
		p, q := f.held(name, nil), f.waits(name, nil)
		require.NoError(f, f.here.Operator().Pause(f.Within(patience), keyspace.Sem, name, fullLease, ""))
		f.release(p)
		return func() { f.release(q.Wait(f.world)) }
	},
	"a hold is resumed elsewhere": func(f *fullHouse, name string) func() {
		p := f.held(name, nil)
		return func() {
			token, err := p.Detach(f.Within(patience))
			require.NoError(f, err)
			p, err := f.sem(f.there, name, 1).Resume(f.Within(patience), token)
			require.NoError(f, err)
			f.release(p)
		}
	},
}

func TestAFullServer(t *testing.T) {
	t.Parallel()
	for what, prepare := range inFullHouse {
		t.Run(what, func(t *testing.T) {
			f := &fullHouse{world: private(t)}
			cfg := node.Config{Lease: fullLease}
			f.here, f.there = f.node(cfg), f.node(cfg)
			then := prepare(f, "gpu")
			f.fill()
			then()
			f.drained()
			f.release(f.held("gpu", nil))
			f.age("gpu", f.look("gpu"))
			f.swept("gpu")
			f.idle("gpu")
		})
	}
}

// asks are the ways to ask for a permit.
var asks = map[string]func(w *world, s *semaphore.Semaphore) (*semaphore.Permit, error){
	"acquire": func(w *world, s *semaphore.Semaphore) (*semaphore.Permit, error) {
		return s.Acquire(w.Within(patience), nil)
	},
	"try": func(w *world, s *semaphore.Semaphore) (*semaphore.Permit, error) {
		return s.TryAcquire(w.Within(patience), nil)
	},
}

// A line that a full server has forgotten stands again as soon as there is room.
func TestALineForgottenByAFullServer(t *testing.T) {
	w := private(t)
	q := w.queueOf(2, 20, 1, safe)
	w.fill()
	for _, part := range []string{w.stateKey("gpu"), w.lineKey("gpu")} {
		w.do("DEL", part)
	}
	q.lost()
	w.pass(q.lease / 2) // heartbeats
	require.Empty(t, w.keys())
	for _, q := range q.waits {
		require.False(t, q.Over(), "a wait ended: %v", q.Err)
	}
	w.drained()
	q.standsAgain()
	q.drain()
}

// A hold and a waiter of one node are renewed in one call. That the waiter,
// forgotten, cannot be put back must not cost the hold its renewal.
func TestARestoreThatFailsCostsNoHold(t *testing.T) {
	w := private(t)
	s := w.sem(w.node(node.Config{Lease: fullLease}), "gpu", 1)
	p := w.take(s, nil)
	q := w.queue(s, nil, 1)
	claim := w.look("gpu").inLine()[0]
	w.fill()
	// In one step, that no heartbeat comes between: the ninth of the values is how many wait.
	const forget = `
for _, member in ipairs(redis.call("ZRANGE", KEYS[2], 0, -1)) do
  if string.match(member, "^%d+%-(.*)") == ARGV[1] then redis.call("ZREM", KEYS[2], member) end
end
redis.call("HDEL", KEYS[1], "c:" .. ARGV[1])
local n = 0
local values = string.gsub(redis.call("HGET", KEYS[1], "v"), "%S+", function(word)
  n = n + 1
  return n == 9 and string.rep("0", #word) or word
end)
redis.call("HSET", KEYS[1], "v", values)`
	w.do("EVAL", forget, "2", w.stateKey("gpu"), w.lineKey("gpu"), claim)
	w.pass(fullLease) // heartbeats
	require.Zero(t, w.look("gpu").waiting(), "it could be put back")
	require.NoError(t, p.Err())
	require.False(t, q.Over(), "the wait has ended: %v", q.Err)
	w.drained()
	w.Await("it stands in line again", func() bool { return w.look("gpu").waiting() == 1 })
	require.NoError(t, p.Release(w.Within(patience)))
	require.NoError(t, q.Wait(w).Release(w.Within(patience)))
}
