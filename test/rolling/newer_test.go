package rolling

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

// newerFormat is one that no release has.
const newerFormat = 1000

// raise puts all states of a kind on a format that is newer than all.
func (s *stage) raise(kind string) {
	keys, err := s.redis.Do(bg, s.redis.B().Keys().Pattern("berth:"+kind+":*:state").Build()).AsStrSlice()
	s.ok(err)
	require.NotEmpty(s, keys)
	for _, key := range keys {
		if text, err := s.redis.Do(bg, s.redis.B().Get().Key(key).Build()).ToString(); err == nil { // a thin name
			s.do("SET", key, fmt.Sprintf("f%d %s", newerFormat, text), "KEEPTTL")
		} else if values, err := s.redis.Do(bg, s.redis.B().Hget().Key(key).Field("v").Build()).ToString(); err == nil {
			_, rest, _ := strings.Cut(values, " ")
			s.do("HSET", key, "v", fmt.Sprint(newerFormat, " ", rest))
		} else { // of a swarm
			s.do("HSET", key, "fmt", fmt.Sprint(newerFormat))
		}
	}
}

// kept is all that the server has of a kind, with when it expires.
func (s *stage) kept(kind string) map[string]string {
	keys, err := s.redis.Do(bg, s.redis.B().Keys().Pattern("berth:"+kind+":*").Build()).AsStrSlice()
	s.ok(err)
	all := map[string]string{}
	for _, key := range keys {
		fields := s.redis.Do(bg, s.redis.B().Hgetall().Key(key).Build())
		if m, err := fields.AsStrMap(); err == nil {
			all[key] = fmt.Sprint(m)
		} else if text, err := s.redis.Do(bg, s.redis.B().Get().Key(key).Build()).ToString(); err == nil {
			all[key] = text
		} else {
			line, err := s.redis.Do(bg, s.redis.B().Zrange().Key(key).Min("0").Max("-1").Withscores().Build()).AsZScores()
			s.ok(err)
			all[key] = fmt.Sprint(line)
		}
		ends, err := s.redis.Do(bg, s.redis.B().Pexpiretime().Key(key).Build()).AsInt64()
		s.ok(err)
		all[key] += fmt.Sprint(" ", ends)
	}
	return all
}

// refused wants the error of a call to say what is wrong.
func (s *stage) refused(what string, err error) {
	require.ErrorIs(s, err, berth.ErrIncompatible, what)
	require.ErrorContains(s, err, fmt.Sprintf("has format %d, which this release does not know", newerFormat), what)
}

// newer are the plays of a process that meets a format which it does not know. Only
// the first process acts: the second one has left what there is.
var newer = map[string]play{
	"semaphore": func(s *stage, a, b *process) {
		hold := a.permit(nil)
		theirs := b.permit(nil)
		token, err := hold.Detach(bg)
		s.ok(err)
		s.raise("sem")
		before := s.kept("sem")
		_, err = a.sem.TryAcquire(bg, nil)
		s.refused("try", err)
		_, err = a.sem.Acquire(bg, nil)
		s.refused("acquire", err)
		_, err = b.sems.Resume(bg, token)
		s.refused("resume", err)
		s.refused("renew", theirs.Renew(bg))
		s.refused("resize", a.sem.Resize(bg, 9, nil))
		_, err = a.sem.Stats(bg)
		s.refused("stats", err)
		s.refused("by id", a.sems.ReleaseByID(bg, name, theirs.ID()))
		for _, err := range a.sem.Holders(bg) {
			s.refused("holders", err)
		}
		for _, err := range a.sem.Waiters(bg) {
			s.refused("waiters", err)
		}
		for _, err := range a.sems.Stats(bg) {
			s.refused("all", err)
		}
		s.refused("release", theirs.Release(bg))
		s.pass(2 * lease)
		require.Equal(s, before, s.kept("sem"), "nothing was written")
	},
	"pool": func(s *stage, a, b *process) {
		a.fill("r1", "r2", "r3")
		token, err := a.resource("r1", nil).Detach(bg)
		s.ok(err)
		theirs := b.resource("r2", nil)
		s.raise("pool")
		before := s.kept("pool")
		_, err = a.pool.TryAllocate(bg, nil)
		s.refused("try", err)
		_, err = a.pool.Allocate(bg, &allocator.AllocateOptions{Bind: "job"})
		s.refused("allocate", err)
		_, err = a.pool.Resume(bg, token)
		s.refused("resume", err)
		s.refused("renew", theirs.Renew(bg))
		s.refused("swap", theirs.Swap(bg))
		_, err = a.pool.Add(bg, []string{"r4"}, nil)
		s.refused("add", err)
		_, err = a.pool.Remove(bg, []string{"r1"})
		s.refused("remove", err)
		_, err = a.pool.Replace(bg, []string{"r4"}, nil)
		s.refused("replace", err)
		_, err = a.pool.Clear(bg)
		s.refused("clear", err)
		s.refused("rest", a.pool.Rest(bg, "r1", second, ""))
		s.refused("bind", a.pool.Bind(bg, "job", "r1", nil))
		s.refused("unbind", a.pool.Unbind(bg, "job"))
		_, err = a.pool.Stats(bg)
		s.refused("stats", err)
		_, err = a.pool.Status(bg, "r1")
		s.refused("status", err)
		_, err = a.pool.Inspect(bg)
		s.refused("inspect", err)
		_, err = a.pool.GC(bg)
		s.refused("gc", err)
		s.refused("by id", a.pools.ReleaseByID(bg, name, theirs.ID()))
		s.refused("release", theirs.Release(bg))
		s.pass(2 * lease)
		require.Equal(s, before, s.kept("pool"), "nothing was written")
	},
	"thin lock and swarm": func(s *stage, a, b *process) { locksAreRefused(s, a, b, false) },
	"fat lock and swarm":  func(s *stage, a, b *process) { locksAreRefused(s, a, b, true) },
	"semaphore, while it holds and waits": func(s *stage, a, b *process) {
		hold, other := a.permit(nil), b.permit(&semaphore.AcquireOptions{Weight: 2})
		waits := a.permitQueued(nil)
		s.raise("sem")
		before := s.kept("sem")
		s.pass(lease / 2)
		require.True(s, over(waits), "it is told with its next heartbeat")
		s.refused("wait", waits.err)
		s.pass(lease)
		for _, h := range []permit{hold, other} {
			require.ErrorIs(s, h.Err(), berth.ErrLost, "what cannot be renewed ends")
		}
		s.pass(lease)
		require.Equal(s, before, s.kept("sem"), "nothing was written")
	},
}

func locksAreRefused(s *stage, a, b *process, fat bool) {
	s.ok(a.locks.Swarm().Start(bg))
	s.ok(a.locks.Swarm().Stop(bg))
	s.ok(b.locks.Swarm().Start(bg))
	hold := a.lock("job", nil)
	if fat {
		b.lockQueued("", nil).stop()
		s.pass(second)
	}
	s.raise("lock")
	s.raise("swarm")
	before := s.kept("lock")
	maps.Copy(before, s.kept("swarm"))
	_, err := a.locks.TryLock(bg, name, nil)
	s.refused("try", err)
	_, err = a.locks.Lock(bg, name, nil)
	s.refused("lock", err)
	_, err = b.locks.Lock(berth.WithOwner(bg, "job"), name, &qlock.LockOptions{Conflict: qlock.WorkThrough})
	s.refused("enter once more", err)
	s.refused("renew", hold.Renew(bg))
	s.refused("extend", hold.Extend(bg, second))
	s.refused("force extend", b.locks.ForceExtend(bg, name, second))
	s.refused("force release", b.locks.ForceRelease(bg, name))
	_, err = b.locks.Info(bg, name)
	s.refused("info", err)
	_, err = b.locks.Locked(bg, name)
	s.refused("locked", err)
	for _, err := range b.locks.Queue(bg, name) {
		s.refused("queue", err)
	}
	_, err = hold.Detach(bg)
	s.refused("detach", err)
	s.refused("release", hold.Release(bg))
	require.ErrorIs(s, b.locks.Swarm().ProbeNow(bg), berth.ErrIncompatible)
	s.pass(2 * lease)
	after := s.kept("lock")
	maps.Copy(after, s.kept("swarm"))
	require.Equal(s, before, after, "nothing was written")
}

// Every call of a client that meets a newer format says so, and writes nothing.
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
