package rolling

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

// newerFormat is one that no release has.
const newerFormat = 1000

// newer is the command that puts a state on a format which is newer than all, nil where there is no state.
func newer(redis rueidis.Client, key string) []string {
	if text, err := redis.Do(bg, redis.B().Get().Key(key).Build()).ToString(); err == nil { // a thin name
		return []string{"SET", key, fmt.Sprintf("f%d %s", newerFormat, text), "KEEPTTL"}
	}
	fields, err := redis.Do(bg, redis.B().Hgetall().Key(key).Build()).AsStrMap()
	_, values, _ := strings.Cut(fields["v"], " ")
	switch {
	case err != nil || len(fields) == 0:
		return nil
	case values != "":
		return []string{"HSET", key, "v", fmt.Sprint(newerFormat, " ", values)}
	case fields["fence"] != "": // a guard has no format number: what is no fence is newer
		return []string{"HSET", key, "fence", fmt.Sprint(newerFormat, ":", fields["fence"])}
	}
	return []string{"HSET", key, "fmt", fmt.Sprint(newerFormat)}
}

// raise puts all states on a newer format.
func (w *world) raise() {
	keys, err := w.redis.Do(bg, w.redis.B().Keys().Pattern("berth:*:state").Build()).AsStrSlice()
	w.ok(err)
	require.NotEmpty(w, keys)
	for _, key := range keys {
		w.do(newer(w.redis, key)...)
	}
}

// kept is all that the server has of names, with when it expires.
func (w *world) kept() string {
	keys, err := w.redis.Do(bg, w.redis.B().Keys().Pattern("berth:*:{*").Build()).AsStrSlice()
	w.ok(err)
	slices.Sort(keys)
	return dump(w, w.redis, keys)
}

// refused wants the error of a call to say what is wrong.
func (w *world) refused(what string, err error) {
	require.ErrorIs(w, err, berth.ErrIncompatible, what)
	require.ErrorContains(w, err, fmt.Sprintf("has format %d, which this release does not know", newerFormat), what)
}

// of is the error of a call.
func of(_ any, err error) error { return err }

// A process that meets a newer format says so with every call, and writes nothing: of a fat name, where somebody waits, and
// of a thin one.
func TestAClientSaysWhichFormatItDoesNotKnow(t *testing.T) {
	for _, f := range []faced{sems, locks, pools} {
		for _, waited := range []bool{false, true} {
			t.Run(fmt.Sprint(f.kind, ", waited for: ", waited), func(t *testing.T) {
				t.Parallel()
				require.Empty(t, perform(t, nil, nil, func(w *world, a, b *process) { f.meets(w, a, b, waited) }))
			})
		}
	}
}

func (f faced) meets(w *world, a, b *process, waited bool) {
	if f.kind == keyspace.Pool {
		a.fill("r1")
	}
	w.ok(b.Swarm().Start(bg))
	hold, lost := f.take(a), handle(nil)
	var line *wait
	switch {
	case waited:
		line = f.queue(b)
	case f.kind == keyspace.Lock:
		lost = take(w)(b.locks.TryLock(bg, "other", nil))
	}
	w.raise()
	before := w.kept()
	w.refused("try", of(f.try(b)))
	w.refused("acquire", of(f.acquire(bg, b)))
	token := berth.Token{Kind: f.kind, Namespace: "berth", Name: name, Claim: "theirs", Node: "x"}
	w.refused("resume", of(f.resume(b, token)))
	w.refused("renew", hold.Renew(bg))
	target := berth.Target{Kind: f.kind, Name: name, Claim: hold.ID()}
	w.refused("force release", of(b.Operator().Release(bg, target)))
	w.refused("want", of(b.Operator().Want(bg, target)))
	w.refused("pause", b.Operator().Pause(bg, f.kind, name, time.Minute, ""))
	w.refused("sweep", of(b.Operator().Sweep(bg, f.kind, name)))
	require.ErrorIs(w, b.Swarm().ProbeNow(bg), berth.ErrIncompatible)
	switch f.kind {
	case keyspace.Sem:
		w.refused("resize", semaphore.NewOperator(b.Node).Resize(bg, name, 9, nil))
	case keyspace.Lock:
		w.refused("extend", hold.(*qlock.Lock).Extend(bg, second))
		w.refused("force extend", qlock.NewOperator(b.Node).Extend(bg, name, second))
	case keyspace.Pool:
		w.refused("swap", hold.(*allocator.Allocation[string]).Swap(bg))
		w.refused("add", of(b.pool.Add(bg, []string{"r4"}, nil)))
		w.refused("remove", of(b.pool.Remove(bg, []string{"r1"})))
		w.refused("replace", of(b.pool.Replace(bg, []string{"r4"}, nil)))
		w.refused("clear", of(b.pool.Clear(bg)))
		w.refused("rest", b.pool.Rest(bg, "r1", second, "", nil))
		w.refused("bind", b.pool.Bind(bg, "job", "r1", nil))
		w.refused("unbind", b.pool.Unbind(bg, "job"))
		w.refused("resource", of(b.pools.Resource(bg, name, "r1")))
		w.refused("inspect", of(b.pools.Inspect(bg, name)))
		w.refused("settings", b.pools.Set(bg, name, "", allocator.Settings{MaxSharers: 2}))
	}
	w.refused("detach", of(hold.Detach(bg)))
	w.refused("release", hold.Release(bg))
	w.pass(2 * lease)
	if line != nil {
		require.True(w, line.Over(), "it is told with its next heartbeat")
		w.refused("wait", line.Err)
	}
	if lost != nil {
		require.ErrorIs(w, lost.Err(), berth.ErrLost, "what cannot be renewed ends")
	}
	require.Equal(w, before, w.kept(), "nothing was written")
}
