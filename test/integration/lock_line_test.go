package integration

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
)

// drainLocks lets one after the other in, and returns them in their order.
func (w *world) drainLocks(waits []*locking) (served []*qlock.Lock) {
	w.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, q := range waits {
		all.Go(func() {
			<-q.Done
			if q.Err != nil {
				w.Errorf("lock: %v", q.Err)
				return
			}
			mu.Lock()
			served = append(served, q.Got)
			mu.Unlock()
			if err := q.Got.Release(w.Within(patience)); err != nil {
				w.Errorf("release: %v", err)
			}
		})
	}
	all.Wait()
	return served
}

// recorder is a connection that keeps what scripts are sent and answer.
type recorder struct {
	rueidis.Client

	mu    sync.Mutex
	sent  map[string]bool     // guarded by mu: the scripts that were sent
	told  map[string]bool     // guarded by mu: the numbers that the server has told
	times map[string][]string // guarded by mu: by script, wall-clock times that it had not told before
}

func (w *world) recorder() *recorder {
	w.Helper()
	w.load()
	return &recorder{
		Client: w.server.Client(w.T), sent: map[string]bool{}, told: map[string]bool{}, times: map[string][]string{},
	}
}

// Do is what scriptkit calls.
func (r *recorder) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	words := cmd.Commands()
	script := isScript(words)
	if script {
		r.note(names[words[1]], words[2:])
	}
	result := r.Client.Do(ctx, cmd)
	if reply, err := result.ToMessage(); script && err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.hear(reply)
	}
	return result
}

func (r *recorder) note(script string, words []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent[script] = true
	for _, word := range words {
		for _, n := range number.FindAllString(word, -1) {
			if value, err := strconv.ParseFloat(n, 64); err == nil && !r.told[n] && isTime(value) {
				r.times[script] = append(r.times[script], n)
			}
		}
	}
}

// number is what may be a time: of seconds, or of a smaller unit.
var number = regexp.MustCompile(`\d{10,}`)

// hear takes the numbers of a reply. It is called with r.mu held.
func (r *recorder) hear(reply rueidis.RedisMessage) {
	if all, err := reply.ToArray(); err == nil {
		for _, part := range all {
			r.hear(part)
		}
		return
	}
	text, err := reply.ToString()
	if n, failed := reply.AsInt64(); failed == nil {
		text, err = strconv.FormatInt(n, 10), nil
	}
	if err == nil {
		for _, n := range number.FindAllString(text, -1) {
			r.told[n] = true
		}
	}
}

// isTime says whether a number is a time within a day from now, in some unit.
func isTime(value float64) bool {
	const day = 86400
	now := float64(time.Now().Unix())
	for _, unit := range []float64{1, 1e3, 1e6, 1e9} {
		if at := value / unit; at > now-day && at < now+day {
			return true
		}
	}
	return false
}

// has says whether a script was sent.
func (r *recorder) has(script string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sent[script]
}

// A node cannot tell the server a wrong time, because it tells none: clocks that
// are apart change nothing.
func TestNoScriptOfLocksIsToldTheTime(t *testing.T) {
	w := sharedLocks(t)
	r := w.recorder()
	cfg := node.Config{Lease: safe, Swarm: node.SwarmConfig{ProbeEvery: 50 * time.Millisecond, ZombieAfter: time.Minute, FlushEvery: -1}}
	c, other := w.lockerOn(r, cfg), w.lockerOn(r, cfg)
	ctx := w.Within(patience)

	require.NoError(t, c.Swarm().Start(ctx))
	outer := w.lockFor(c, "me", &qlock.LockOptions{Lease: time.Minute, MaxHold: time.Hour, Meta: map[string]string{"k": "v"}})
	w.unlock(w.lockFor(c, "me", &qlock.LockOptions{Conflict: qlock.WorkThrough}))
	w.unlock(w.lockFor(c, "me", &qlock.LockOptions{Lease: 2 * time.Second, Conflict: qlock.ExtendAndWorkThrough}))
	require.NoError(t, outer.Renew(ctx))
	require.NoError(t, outer.Extend(ctx, time.Second))
	require.NoError(t, qlock.NewOperator(other.Node).Extend(ctx, door, time.Second))
	waits := []*locking{
		w.lockQueue(other, &qlock.LockOptions{RequeueEvery: 40 * time.Millisecond}, 1),
		w.lockQueue(other, &qlock.LockOptions{Access: qlock.Random, Priority: 2}, 2),
		w.lockQueue(other, &qlock.LockOptions{Access: qlock.LIFO, MaxWait: patience, Attempts: qlock.Attempts{Max: 1000}}, 3),
	}
	w.Await("one goes to the end of the line", func() bool { return r.has("lock_requeue") })
	_, err := other.TryLock(ctx, door, &qlock.LockOptions{DetailedErrors: true})
	require.ErrorIs(t, err, berth.ErrBusy)
	require.ErrorIs(t, err, berth.ErrNotAcquired)
	w.forget(door)
	w.Await("they stand in line again", func() bool { return r.has("lock_restore") })
	w.Signalled("the holder to hear", outer.Done())
	for range waits {
		i, l := w.firstOf(waits)
		token, err := l.Detach(ctx)
		require.NoError(t, err)
		l, err = c.Resume(ctx, token)
		require.NoError(t, err)
		w.unlock(l)
		waits = slices.Delete(waits, i, i+1)
	}
	l := w.lock(c, nil)
	_, err = other.Operator().Release(ctx, berth.Target{Kind: keyspace.Lock, Name: door})
	require.NoError(t, err)
	w.Signalled("the holder to hear", l.Done())
	l = w.lock(c, nil)
	count, err := other.Operator().Release(ctx, berth.Target{Node: c.ID()})
	require.NoError(t, err)
	require.Equal(t, 1, count)
	w.Signalled("the holder to hear", l.Done())
	endless, err := c.Lock(ctx, "endless", &qlock.LockOptions{Lease: berth.Forever})
	require.NoError(t, err)
	w.Await("a flush has asked for its node", func() bool {
		_, err := c.Swarm().FlushNow(ctx)
		require.NoError(t, err)
		return r.has("swarm_expect")
	})
	w.unlock(endless)
	for _, err := range c.Swarm().Info(ctx) {
		require.NoError(t, err)
	}
	require.NoError(t, c.Swarm().Stop(ctx))

	for _, script := range []string{
		"lock_acquire", "lock_extend", "lock_force_hold", "lock_release", "lock_renew", "lock_requeue",
		"lock_resume", "lock_force_release", "lock_restore",
		"swarm_expect", "swarm_leave", "swarm_probe",
	} {
		require.True(t, r.has(script), "%s was not sent", script)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	require.Empty(t, r.times, "wall-clock times that the server had not told")
}

// firstOf waits for the first lock of several.
func (w *world) firstOf(waits []*locking) (i int, l *qlock.Lock) {
	w.Helper()
	w.Await("one has the lock", func() bool {
		i = slices.IndexFunc(waits, (*locking).Over)
		return i >= 0
	})
	return i, waits[i].Wait(w)
}
