package rolling

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

// newerFormat is one that no release has.
const newerFormat = 1000

// raise puts all states of a kind on a format that is newer than all.
func (w *world) raise(kind string) {
	keys, err := w.redis.Do(bg, w.redis.B().Keys().Pattern("berth:"+kind+":*:state").Build()).AsStrSlice()
	w.ok(err)
	require.NotEmpty(w, keys)
	for _, key := range keys {
		if text, err := w.redis.Do(bg, w.redis.B().Get().Key(key).Build()).ToString(); err == nil { // a thin name
			w.do("SET", key, fmt.Sprintf("f%d %s", newerFormat, text), "KEEPTTL")
		} else if values, err := w.redis.Do(bg, w.redis.B().Hget().Key(key).Field("v").Build()).ToString(); err == nil {
			_, rest, _ := strings.Cut(values, " ")
			w.do("HSET", key, "v", fmt.Sprint(newerFormat, " ", rest))
		} else { // of a swarm
			w.do("HSET", key, "fmt", fmt.Sprint(newerFormat))
		}
	}
}

// kept is all that the server has of a kind, with when it expires.
func (w *world) kept(kind string) map[string]string {
	keys, err := w.redis.Do(bg, w.redis.B().Keys().Pattern("berth:"+kind+":*").Build()).AsStrSlice()
	w.ok(err)
	all := map[string]string{}
	for _, key := range keys {
		fields := w.redis.Do(bg, w.redis.B().Hgetall().Key(key).Build())
		if m, err := fields.AsStrMap(); err == nil {
			all[key] = fmt.Sprint(m)
		} else if text, err := w.redis.Do(bg, w.redis.B().Get().Key(key).Build()).ToString(); err == nil {
			all[key] = text
		} else {
			line, err := w.redis.Do(bg, w.redis.B().Zrange().Key(key).Min("0").Max("-1").Withscores().Build()).AsZScores()
			w.ok(err)
			all[key] = fmt.Sprint(line)
		}
		ends, err := w.redis.Do(bg, w.redis.B().Pexpiretime().Key(key).Build()).AsInt64()
		w.ok(err)
		all[key] += fmt.Sprint(" ", ends)
	}
	return all
}

// refused wants the error of a call to say what is wrong.
func (w *world) refused(what string, err error) {
	require.ErrorIs(w, err, berth.ErrIncompatible, what)
	require.ErrorContains(w, err, fmt.Sprintf("has format %d, which this release does not know", newerFormat), what)
}

// newer are the plays of a process that meets a format which it does not know. Only
// the first process acts: the second one has left what there is.
var newer = map[string]play{
	"semaphore": func(w *world, a, b *process) {
		hold := a.permit(nil)
		theirs := b.permit(nil)
		token, err := hold.Detach(bg)
		w.ok(err)
		w.raise("sem")
		before := w.kept("sem")
		_, err = a.sem.TryAcquire(bg, nil)
		w.refused("try", err)
		_, err = a.sem.Acquire(bg, nil)
		w.refused("acquire", err)
		_, err = b.sem.Resume(bg, token)
		w.refused("resume", err)
		w.refused("renew", theirs.Renew(bg))
		w.refused("resize", semaphore.NewOperator(a.Node).Resize(bg, name, 9, nil))
		_, err = a.Operator().Release(bg, berth.Target{Kind: keyspace.Sem, Name: name, Claim: theirs.ID()})
		w.refused("force", err)
		w.refused("release", theirs.Release(bg))
		w.pass(2 * lease)
		require.Equal(w, before, w.kept("sem"), "nothing was written")
	},
	"pool": func(w *world, a, b *process) {
		a.fill("r1", "r2", "r3")
		token, err := a.resource("r1", nil).Detach(bg)
		w.ok(err)
		theirs := b.resource("r2", nil)
		w.raise("pool")
		before := w.kept("pool")
		_, err = a.pool.TryAllocate(bg, nil)
		w.refused("try", err)
		_, err = a.pool.Allocate(bg, &allocator.AllocateOptions{Bind: "job"})
		w.refused("allocate", err)
		_, err = a.pool.Resume(bg, token)
		w.refused("resume", err)
		w.refused("renew", theirs.Renew(bg))
		w.refused("swap", theirs.Swap(bg))
		_, err = a.pool.Add(bg, []string{"r4"}, nil)
		w.refused("add", err)
		_, err = a.pool.Remove(bg, []string{"r1"})
		w.refused("remove", err)
		_, err = a.pool.Replace(bg, []string{"r4"}, nil)
		w.refused("replace", err)
		_, err = a.pool.Clear(bg)
		w.refused("clear", err)
		w.refused("rest", a.pool.Rest(bg, "r1", second, "", nil))
		w.refused("bind", a.pool.Bind(bg, "job", "r1", nil))
		w.refused("unbind", a.pool.Unbind(bg, "job"))
		_, err = a.pools.Resource(bg, name, "r1")
		w.refused("resource", err)
		_, err = a.pools.Inspect(bg, name)
		w.refused("inspect", err)
		_, err = a.Operator().Sweep(bg, keyspace.Pool, name)
		w.refused("sweep", err)
		_, err = a.Operator().Release(bg, berth.Target{Kind: keyspace.Pool, Name: name, Claim: theirs.ID()})
		w.refused("by id", err)
		w.refused("release", theirs.Release(bg))
		w.pass(2 * lease)
		require.Equal(w, before, w.kept("pool"), "nothing was written")
	},
	"thin lock and swarm": func(w *world, a, b *process) { locksAreRefused(w, a, b, false) },
	"fat lock and swarm":  func(w *world, a, b *process) { locksAreRefused(w, a, b, true) },
	"semaphore, while it holds and waits": func(w *world, a, b *process) {
		hold, other := a.permit(nil), b.permit(&semaphore.AcquireOptions{Weight: 2})
		waits := a.permitQueued(nil)
		w.raise("sem")
		before := w.kept("sem")
		w.pass(lease / 2)
		require.True(w, over(waits), "it is told with its next heartbeat")
		w.refused("wait", waits.err)
		w.pass(lease)
		for _, h := range []permit{hold, other} {
			require.ErrorIs(w, h.Err(), berth.ErrLost, "what cannot be renewed ends")
		}
		w.pass(lease)
		require.Equal(w, before, w.kept("sem"), "nothing was written")
	},
}

func locksAreRefused(w *world, a, b *process, fat bool) {
	w.ok(a.Swarm().Start(bg))
	w.ok(a.Swarm().Stop(bg))
	w.ok(b.Swarm().Start(bg))
	hold := a.lock("job", nil)
	if fat {
		b.lockQueued("", nil).stop()
		w.pass(second)
	}
	w.raise("lock")
	w.raise("swarm")
	before := w.kept("lock")
	maps.Copy(before, w.kept("swarm"))
	_, err := a.locks.TryLock(bg, name, nil)
	w.refused("try", err)
	_, err = a.locks.Lock(bg, name, nil)
	w.refused("lock", err)
	_, err = b.locks.Lock(berth.WithOwner(bg, "job"), name, &qlock.LockOptions{Conflict: qlock.WorkThrough})
	w.refused("enter once more", err)
	w.refused("renew", hold.Renew(bg))
	w.refused("extend", hold.Extend(bg, second))
	w.refused("force extend", qlock.NewOperator(b.Node).Extend(bg, name, second))
	_, err = b.Operator().Release(bg, berth.Target{Kind: keyspace.Lock, Name: name})
	w.refused("force release", err)
	_, err = hold.Detach(bg)
	w.refused("detach", err)
	w.refused("release", hold.Release(bg))
	require.ErrorIs(w, b.Swarm().ProbeNow(bg), berth.ErrIncompatible)
	w.pass(2 * lease)
	after := w.kept("lock")
	maps.Copy(after, w.kept("swarm"))
	require.Equal(w, before, after, "nothing was written")
}

// Every call of a process that meets a newer format says so, and writes nothing.
func TestAClientSaysWhichFormatItDoesNotKnow(t *testing.T) {
	for _, r := range releases(t) {
		library := r.library
		for what, play := range newer {
			t.Run(r.version+"/"+what, func(t *testing.T) {
				t.Parallel()
				require.Empty(t, perform(t, library, library, play))
			})
		}
	}
}
