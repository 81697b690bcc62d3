package rolling

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/fence"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/once"
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

// kept is all that the server has of names, with when it expires: what operators say to all, and the registry of who waits, have
// no number.
func (w *world) kept() string {
	keys, err := w.redis.Do(bg, w.redis.B().Keys().Pattern("berth:*:{*").Build()).AsStrSlice()
	w.ok(err)
	slices.Sort(keys)
	return dump(w, w.redis, slices.DeleteFunc(keys, func(key string) bool {
		kind, _, _ := strings.Cut(strings.TrimPrefix(key, "berth:"), ":")
		return !slices.Contains([]string{"sem", "lock", "pool", "once", "swarm", "fence"}, kind)
	}))
}

// of is the error of a call.
func of(_ any, err error) error { return err }

// stage is a name that a newer release has written. a holds it, b may wait for it, and c has not been there before.
type stage struct {
	*world
	faced
	a, b, c *process
	hold    handle
	line    *wait // nil where nobody waits
	job     *once.Job
	guard   *fence.Redis
}

// deed is what a process of an older release does at such a name: a row of the table in docs/operations.md.
type deed struct {
	what   string
	by     func(s *stage) *process
	before func(s *stage) // the number rises; nil for nothing
	does   func(s *stage) []error
}

func holder(s *stage) *process   { return s.a }
func waiter(s *stage) *process   { return s.b }
func newcomer(s *stage) *process { return s.c }

var deeds = []deed{
	{"asks for the name, or waits for it", newcomer, nil, func(s *stage) []error {
		token := berth.Token{Kind: s.kind, Namespace: "berth", Name: name, Claim: "theirs", Node: "x"}
		return []error{of(s.try(s.c)), of(s.acquire(bg, s.c)), of(s.resume(s.c, token))}
	}},
	{"asks for the name, or waits for it", waiter, nil, func(s *stage) []error {
		if s.line == nil {
			return nil
		}
		s.pass(lease)
		require.True(s, s.line.Over(), "it is told with its next heartbeat")
		return []error{s.line.Err}
	}},
	{"holds it, until the lease ends", holder, nil, func(s *stage) []error {
		s.pass(lease / 2)
		s.ok(s.hold.Err())
		s.pass(lease)
		return []error{s.hold.Err()}
	}},
	{"renews, extends, swaps, detaches, releases it", holder, nil, func(s *stage) []error {
		errs := []error{s.hold.Renew(bg)}
		switch h := s.hold.(type) {
		case *qlock.Lock:
			errs = append(errs, h.Extend(bg, second))
		case *allocator.Allocation[string]:
			errs = append(errs, h.Swap(bg))
		}
		return append(errs, of(s.hold.Detach(bg)), s.hold.Release(bg))
	}},
	{"calls an `Operator`, changes its pool, reads it, runs its job, asks its guard", newcomer, func(s *stage) {
		s.job = once.New(s.c.Node, "job", once.Config{Every: time.Hour})
		s.ok(of(s.job.Do(bg, func(context.Context, *once.Run) error { return nil })))
		s.ok(s.guard.Admit(bg, name, 7))
	}, func(s *stage) []error {
		return slices.Concat(s.operates(), s.operatesOnAll(), []error{
			of(s.reader.Name(bg, s.kind, name)), of(s.reader.Holders(bg, s.kind, name, "", 0)), of(s.reader.Waiters(bg, s.kind, name, "", 0)),
			of(s.job.Do(bg, func(context.Context, *once.Run) error { panic("it must not run") })), of(s.job.Last(bg)),
			s.guard.Admit(bg, name, 9), s.guard.Forget(bg, name, 9),
		})
	}},
	{"is in a swarm whose number has risen", newcomer, func(s *stage) { s.ok(s.c.Swarm().Start(bg)) }, func(s *stage) []error {
		s.pass(20 * second) // it goes on with its probes
		swarm := s.c.Swarm()
		return []error{swarm.ProbeNow(bg), of(swarm.FlushNow(bg)), of(swarm.Zombies(bg))}
	}},
}

// operatesOnAll are the errors of an operator's calls about all names, of which this one alone is in the way.
func (s *stage) operatesOnAll() []error {
	ops := s.c.Operator()
	errs := []error{
		of(ops.Sweep(bg, "")), of(ops.Release(bg, berth.Target{Owner: "nobody"})), of(ops.Want(bg, berth.Target{Node: s.a.ID()})),
		of(ops.Drain(bg, berth.DrainTarget{Label: "nobody"}, nil)),
	}
	if s.line == nil { // who asks for a thin name has heard of the pause: nobody need write it
		return errs
	}
	return append(errs, of(ops.PauseAll(bg, time.Minute, "")), of(ops.UnpauseAll(bg)))
}

// operates are the errors of all calls of an operator about the name.
func (s *stage) operates() (errs []error) {
	ops, target := s.c.Operator(), berth.Target{Kind: s.kind, Name: name, Claim: s.hold.ID()}
	errs = []error{
		of(ops.Release(bg, target)), of(ops.Release(bg, berth.Target{Kind: s.kind, Name: name})), of(ops.Want(bg, target)),
		ops.Pause(bg, s.kind, name, time.Minute, ""), ops.Unpause(bg, s.kind, name), of(ops.Sweep(bg, s.kind, name)),
	}
	switch pool, pools := s.c.pool, s.c.pools; s.kind {
	case keyspace.Sem:
		errs = append(errs, semaphore.NewOperator(s.c.Node).Resize(bg, name, 9, nil))
	case keyspace.Lock:
		errs = append(errs, qlock.NewOperator(s.c.Node).Extend(bg, name, second))
	case keyspace.Pool:
		errs = append(errs,
			of(pool.Add(bg, []string{"r4"}, nil)), of(pool.Remove(bg, []string{"r1"})), of(pool.Replace(bg, []string{"r4"}, nil)),
			of(pool.Clear(bg)), pool.Rest(bg, "r1", second, "", nil), pool.Bind(bg, "job", "r1", nil), pool.Unbind(bg, "job"),
			of(pools.Resource(bg, name, "r1")), of(pools.Inspect(bg, name)), pools.Set(bg, name, "", allocator.Settings{MaxSharers: 2}),
		)
	}
	return errs
}

// sentinels are what the table names.
var sentinels = []struct {
	name string
	err  error
}{{"ErrLost", berth.ErrLost}, {"ErrIncompatible", berth.ErrIncompatible}, {"fence.ErrStale", fence.ErrStale}}

// outcome is how the table has an error.
func outcome(err error) string {
	var names []string
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			names = append(names, "`"+s.name+"`")
		}
	}
	return strings.Join(names, ", ")
}

// play has the deed done at a name of one kind, and returns what came of it: what all calls returned, and which events the process
// told of, from warnings on.
func (d *deed) play(t *testing.T, r release, f faced, waited bool) (row string) {
	t.Helper()
	library := r.library
	if r.version == today.version {
		library = nil
	}
	require.Empty(t, perform(t, library, library, func(w *world, a, b *process) {
		s := &stage{world: w, faced: f, a: a, b: b, c: w.process(library)}
		if f.kind == keyspace.Pool {
			a.fill("r1")
		}
		var err error
		s.guard, err = fence.NewRedis(s.c.redis, fence.RedisConfig{})
		w.ok(err)
		s.hold = f.take(a)
		if waited {
			s.line = f.queue(b)
		}
		if d.before != nil {
			d.before(s)
		}
		w.raise()
		before := w.kept()
		d.by(s).events() // what comes from here on counts
		errs := d.does(s)
		synctest.Wait()
		events := d.by(s).events()
		w.pass(2 * lease)
		require.Equal(w, before, w.kept(), "nothing was written")
		if errs == nil {
			return
		}
		came := outcome(errs[0])
		for i, err := range errs {
			require.Equal(w, came, outcome(err), "call %d of %d: %v", i+1, len(errs), err)
		}
		row = strings.ReplaceAll(fmt.Sprintf("| %s | %s | %s |", d.what, came, strings.Join(events, ", ")), "|  |", "| |")
	}), "%s: %s, waited for: %t, by %s", d.what, f.kind, waited, r.version)
	return row
}

// The last release, and today's, at a name of a number that they do not know: fat, where somebody waits, or thin.
func TestWhatAReleaseMeetsAtANameOfANewerOne(t *testing.T) {
	text, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(text), "| a process of the older release | gets | tells |\n|---|---|---|\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "| `berth ") // what commands say is tested with them
	var rows []string
	for _, d := range deeds {
		for _, r := range []release{previous(t), today} {
			for _, f := range []faced{sems, locks, pools} {
				for _, waited := range []bool{false, true} {
					if row := d.play(t, r, f, waited); row != "" && !slices.Contains(rows, row) {
						rows = append(rows, row)
					}
				}
			}
		}
	}
	require.Equal(t, strings.Join(rows, "\n")+"\n", table, "docs/operations.md is to have these rows: all kinds and forms are alike")
}
