package line_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/semaphore"
)

// registry is a server in virtual time, seen by its registry of names that wait.
type registry struct{ *testkit.World }

func inRegistry(t *testing.T, test func(t *testing.T, w registry)) {
	t.Helper()
	testkit.In(t, "gpu", "berth:sem:{gpu}:state", "berth:sem:{gpu}:line", func(t *testing.T, w *testkit.World) {
		test(t, registry{w})
	})
}

// keyOf is where the registry has a member.
func keyOf(member string) string { return fmt.Sprintf("berth:waits:{%d}:names", state.Shard(member)) }

// until is until when the registry believes in a member, as a moment of the test; 0 for one
// that is not in it.
func (w registry) until(member string) time.Duration {
	w.T.Helper()
	score, err := w.Do("ZSCORE", keyOf(member), member).AsFloat64()
	if err != nil {
		return 0
	}
	return time.UnixMilli(int64(score)).Sub(w.Began)
}

// size is how many members the registry has.
func (w registry) size() (n int64) {
	w.T.Helper()
	for shard := range state.Shards {
		n += w.Int("ZCARD", fmt.Sprintf("berth:waits:{%d}:names", shard))
	}
	return n
}

// visitor is a process that asks for semaphores of capacity 1.
type visitor struct {
	*testkit.Process
	node  *node.Node
	mu    sync.Mutex
	notes []time.Duration // guarded by mu: when the process has sent notes
}

// noted is when the process has sent notes.
func (v *visitor) noted() []time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.notes)
}

// visitor starts a process with that wait lease.
func (w registry) visitor(lease time.Duration) *visitor {
	w.T.Helper()
	v := &visitor{Process: w.Process()}
	v.OnCommand(func(c link.Command) link.Fate {
		if c.Name == "waits_note" {
			v.mu.Lock()
			defer v.mu.Unlock()
			v.notes = append(v.notes, w.Now())
		}
		return link.Fate{}
	})
	var err error
	v.node, err = node.New(v.Redis, node.Config{Lease: lease, Observer: v.Observer(nil)})
	require.NoError(w.T, err)
	v.Closes(v.node.Close)
	return v
}

// queue has the process wait for a semaphore.
func (v *visitor) queue(name string) *testkit.Wait[*semaphore.Permit] {
	v.W.T.Helper()
	s := semaphore.New(v.node, name, 1, semaphore.Config{})
	return testkit.Queue(context.Background(), v.W, func(ctx context.Context) (*semaphore.Permit, error) {
		return s.Acquire(ctx, nil)
	})
}

// take has the process get a semaphore at once.
func (v *visitor) take(name string) *semaphore.Permit {
	v.W.T.Helper()
	return v.queue(name).Granted(v.W.Now())
}

func TestANameIsInTheRegistryAsSoonAsSomebodyWaitsForIt(t *testing.T) {
	inRegistry(t, func(t *testing.T, w registry) {
		a, b := w.visitor(lease), w.visitor(lease)
		held := a.take("gpu")
		require.NoError(t, a.take("calm").Release(context.Background()))
		_, err := semaphore.New(a.node, "wide", 2, semaphore.Config{}).Acquire(context.Background(), nil)
		require.NoError(t, err)
		_, err = semaphore.New(b.node, "gpu", 1, semaphore.Config{}).TryAcquire(context.Background(), nil)
		require.Error(t, err)
		w.Advance(10 * time.Minute)
		require.Zero(t, w.size(), "nobody has waited")
		require.Empty(t, a.noted())
		require.Empty(t, b.noted())

		began := w.Now()
		waits := b.queue("gpu")
		require.Equal(t, began+5*time.Minute, w.until("sem:gpu"))
		require.Equal(t, int64(1), w.size())
		require.NoError(t, held.Release(context.Background()))
		waits.Granted(began)
		require.Empty(t, a.noted())
		require.Len(t, b.noted(), 1)
		require.Equal(t, int64(1), w.Int("EXISTS", keyOf("sem:gpu")), "somebody has just waited")
		w.Until(began + 5*time.Minute - time.Millisecond)
		require.Equal(t, int64(1), w.Int("EXISTS", keyOf("sem:gpu")))
		w.Advance(time.Millisecond)
		require.Zero(t, w.Int("EXISTS", keyOf("sem:gpu")), "no key is left")
	})
}

func TestTheRegistryBelievesThroughALongWaitLease(t *testing.T) {
	inRegistry(t, func(t *testing.T, w registry) {
		w.visitor(time.Hour).take("gpu")
		w.visitor(time.Hour).queue("gpu")
		require.Equal(t, time.Hour, w.until("sem:gpu")-w.Now())
		w.Advance(time.Second)
		v := w.visitor(lease) // which believes for less long
		v.queue("gpu")
		v.Shut()
		for range 70 {
			require.Greater(t, w.until("sem:gpu"), w.Now()+30*time.Minute)
			w.Advance(time.Minute)
		}
	})
}

func TestTheRegistryIsBackAfterAFlush(t *testing.T) {
	inRegistry(t, func(t *testing.T, w registry) {
		w.visitor(lease).take("gpu")
		w.visitor(lease).queue("gpu") // which gets it after the flush
		w.visitor(lease).queue("gpu")
		w.Do("FLUSHALL")
		w.Advance(30*time.Second + lease/3)
		require.Greater(t, w.until("sem:gpu"), w.Now())
	})
}

func TestANoteThatFailsIsNothingToTheWait(t *testing.T) {
	inRegistry(t, func(t *testing.T, w registry) {
		w.visitor(lease).take("gpu")
		full, denied := w.visitor(lease), w.visitor(lease)
		var notes atomic.Int64
		fails := func(answer string) func(c link.Command) link.Fate {
			return func(c link.Command) link.Fate {
				if c.Name != "waits_note" {
					return link.Fate{}
				}
				notes.Add(1)
				return link.Refuse(answer)
			}
		}
		full.OnCommand(fails("OOM command not allowed when used memory > 'maxmemory'."))
		denied.OnCommand(fails("NOPERM this user has no permissions to access one of the keys used as arguments"))
		full.queue("gpu")
		denied.queue("gpu")
		w.Advance(29 * time.Second)
		require.Equal(t, int64(2), notes.Load(), "it is not repeated")
		w.Advance(29 * time.Second)
		require.Equal(t, int64(4), notes.Load())
		for _, v := range []*visitor{full, denied} {
			require.ElementsMatch(t, []observe.Kind{observe.Queued, observe.Subscribed}, v.Kinds(), "in either order")
		}
		require.Zero(t, w.size())
	})
}

// A process that waits for very many names sends a script a shard, in four rounds a second.
func TestNotesAreGathered(t *testing.T) {
	inRegistry(t, func(t *testing.T, w registry) {
		var names []string
		left := map[int]int{3: 250, 4: 5}
		for i := 0; len(names) < 255; i++ {
			name := strconv.Itoa(i)
			if shard := state.Shard("sem:" + name); left[shard] > 0 {
				left[shard]--
				names = append(names, name)
			}
		}
		a, b := w.visitor(time.Hour), w.visitor(time.Hour)
		for _, name := range names {
			a.take(name)
		}
		began := w.Now()
		for _, name := range names {
			b.queue(name) // which takes no time
		}
		require.Len(t, b.noted(), 1, "the first one at once")
		w.Advance(time.Second)
		require.Equal(t, int64(255), w.size())
		at := func(n time.Duration) time.Duration { return began + n*250*time.Millisecond }
		require.Equal(t, []time.Duration{began, at(1), at(1), at(2)}, b.noted(), "at most 200 names a script")
		b.take("calm")
		w.visitor(time.Hour).queue("calm")
		b.queue("calm")
		require.Equal(t, w.Now(), b.noted()[4])
	})
}

func TestANoteDropsAHundredThatAreNotBelievedAnyMore(t *testing.T) {
	inRegistry(t, func(t *testing.T, w registry) {
		key := []string{"berth:waits:{0}:names"}
		note := func(lasts string, members ...string) {
			reply := w.CallOn(key, "waits_note", append([]string{lasts}, members...)...)
			require.Equal(t, "noted", reply.Status())
		}
		var many []string
		for i := range 199 {
			many = append(many, "sem:"+strconv.Itoa(i))
		}
		note("60000", append(many, "lock:stays")...)
		note("120000", "lock:stays")
		note("1000", "lock:stays")
		require.Equal(t, 2*time.Minute, time.Duration(w.Int("PTTL", key[0]))*time.Millisecond, "never nearer")
		w.Advance(time.Minute - time.Millisecond)
		note("60000", "pool:new")
		require.Equal(t, int64(201), w.Int("ZCARD", key[0]))
		w.Advance(time.Millisecond)
		note("60000", "pool:new")
		require.Equal(t, int64(101), w.Int("ZCARD", key[0]))
		note("60000", "pool:new")
		left, err := w.Do("ZRANGE", key[0], "0", "-1").AsStrSlice()
		require.NoError(t, err)
		require.ElementsMatch(t, []string{"lock:stays", "pool:new"}, left)
	})
}

// A shard whose clock was ahead has members that are believed for as long as it was.
func TestANoteDropsWhatAClockThatWasAheadHasLeft(t *testing.T) {
	inRegistry(t, func(t *testing.T, w registry) {
		key := keyOf("sem:gpu")
		far := w.Began.Add(25 * time.Hour).UnixMilli()
		for member, score := range map[string]int64{"sem:gpu": 2 * far, "sem:year": far, "sem:day": far - 1} {
			w.Do("ZADD", key, strconv.FormatInt(score, 10), member)
		}
		w.visitor(lease).take("gpu")
		w.visitor(1000 * time.Hour).queue("gpu")
		left, err := w.Do("ZRANGE", key, "0", "-1").AsStrSlice()
		require.NoError(t, err)
		require.Equal(t, []string{"sem:gpu", "sem:day"}, left)
		require.Equal(t, 24*time.Hour, w.until("sem:gpu"), "no note is as far ahead")
		require.Equal(t, far-1, w.Int("PEXPIRETIME", key))
	})
}

func TestCloseWaitsForNoNote(t *testing.T) {
	inRegistry(t, func(t *testing.T, w registry) {
		w.visitor(lease).take("gpu")
		w.visitor(lease).take("cpu")
		v := w.visitor(lease)
		v.queue("gpu")
		v.queue("cpu") // noted in 250 ms
		began := w.Now()
		require.NoError(t, v.node.Close(context.Background()))
		require.Equal(t, began, w.Now(), "Close does not wait for a pause")
		require.Zero(t, w.until("sem:cpu"))
	})
}
