package fast

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/model/pool"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/tools/compose"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// plains are the functions that are the plain case.
var plains = []string{"fast_acquire", "fast_wait", "fast_release", "fast_handoff", "fast_renew", "fast_renew_batch"}

// World is where the histories run.
type World struct {
	T testing.TB
	// Redis runs the scripts, and looks on.
	Redis rueidis.Client
	// Now is the time that the scripts read. It stands still but for Advance, which
	// lets time pass, and those of the keys expire whose time comes then.
	Now     func() time.Time
	Advance func(d time.Duration, keys ...string)
	// Library has scripts read that time; nil where it is the server's.
	Library func(compose.Scripts) *scriptkit.Library
}

// world is a name on a server, and its twin, a copy on which the scripts run that never take
// the plain case.
type world struct {
	World
	releases
	kind        string // lock or semaphore
	name        string
	state, line string
	twin        [2]string
	backup      [2]string
	heard       *pool.Pushes
	fence       int64            // the last that a reply has named
	fences      map[string]int64 // by claim
	asked       map[string]engine.Record
	thin        bool // the last call was one that a script of thin names answers
	damaged     bool // by hand, so that what is kept need not be of one piece
	capacity    int  // what the claims name, of a semaphore
}

// names returns what makes names. The keys of one, of its twin and of its backup are in one slot.
func (w World) names() func(kind, name string) *world {
	both, err := parsed()
	if w.Library != nil {
		both, err = parse(w.Library)
	}
	require.NoError(w.T, err)
	heard := pool.Listen(w.T, w.Redis, space)
	return func(kind, name string) *world {
		state, line := space.State(kinds[kind], name), space.Line(kinds[kind], name)
		return &world{
			World: w, releases: both, kind: kind, name: name, state: state, line: line,
			twin: [2]string{"twin:" + state, "twin:" + line}, backup: [2]string{"backup:" + state, "backup:" + line},
			heard: heard, capacity: 2, fences: map[string]int64{},
		}
	}
}

// Advance lets time pass.
func (w *world) Advance(d time.Duration) {
	w.World.Advance(d, w.state, w.line, w.backup[0], w.backup[1])
}

// space has the names, of these kinds.
var (
	space, _ = keyspace.New("berth")
	kinds    = map[string]keyspace.Kind{"lock": keyspace.Lock, "semaphore": keyspace.Sem, "pool": keyspace.Pool}
)

// do runs a command, and returns its answer, nil for none.
func (w *world) do(t require.TestingT, words ...string) any {
	answer, err := w.Redis.Do(context.Background(), w.Redis.B().Arbitrary(words...).Build()).ToAny()
	if !rueidis.IsRedisNil(err) {
		require.NoError(t, err, "%.300q", words)
	}
	return answer
}

// eval runs a script, and returns its reply.
func (w *world) eval(t require.TestingT, from *scriptkit.Library, script, state, line string, args []string) any {
	words := append([]string{"EVAL", from.Script(script).Source(), "2", state, line}, args...)
	return w.do(t, words...)
}

// call runs a script on the name, and returns its reply.
func (w *world) call(t require.TestingT, script string, args ...string) any {
	return w.eval(t, w.whole, script, w.state, w.line, args)
}

// dump is all that the server has of a name.
func (w *world) dump(t require.TestingT, state, line string) string {
	fields, err := w.Redis.Do(context.Background(), w.Redis.B().Hgetall().Key(state).Build()).AsStrMap()
	kept := any(fields) // in the order of their names
	if err != nil {
		kept = w.do(t, "MGET", state).([]any)[0]
	}
	return fmt.Sprintln(kept, w.do(t, "PEXPIRETIME", state), w.do(t, "ZRANGE", line, "0", "-1", "WITHSCORES"), w.do(t, "PEXPIRETIME", line))
}

// value is one of the numbers of the name.
func (w *world) value(t require.TestingT, name string) int64 {
	if text, ok := w.text(t); ok {
		thin, err := testkit.ParseThin(text)
		require.NoError(t, err)
		return testkit.ThinCounts(thin, w.Now().UnixMilli())[name]
	}
	counts, err := testkit.Counts(fmt.Sprint(w.do(t, "HGET", w.state, "v")))
	require.NoError(t, err)
	return counts[name]
}

// text is that of a thin name.
func (w *world) text(t require.TestingT) (text string, thin bool) {
	words, ok := w.do(t, "MGET", w.state).([]any)
	require.True(t, ok)
	text, thin = words[0].(string)
	return text, thin
}

// setValue has the name keep another number than it does, if it is there, and has such a number:
// fmt or fence where it is thin.
func (w *world) setValue(t require.TestingT, name string, n int64) {
	text, thin := w.text(t)
	switch {
	case !thin && w.do(t, "EXISTS", w.state) == int64(1):
		text, ok := w.do(t, "HGET", w.state, "v").(string)
		require.True(t, ok)
		w.do(t, "HSET", w.state, "v", testkit.WithCount(t, text, name, n))
	case thin && name == "fence":
		w.do(t, "SETRANGE", w.state, "0", fmt.Sprintf("%016d", n))
	case thin && name == "fmt" && n == 3:
		w.do(t, "SET", w.state, strings.TrimPrefix(text, "f4 "), "KEEPTTL")
	case thin && name == "fmt":
		w.do(t, "SET", w.state, fmt.Sprintf("f%d %s", n, text), "KEEPTTL")
	}
}

// taken is how often each of some plain functions was taken.
func (w *world) taken(t require.TestingT, plains []string) string {
	keys := []string{"MGET"}
	for _, plain := range plains {
		keys = append(keys, "{"+w.name+"}"+plain)
	}
	return fmt.Sprint(w.do(t, keys...))
}

// secret is that of all claims.
const secret = "secret-of-1"

const channel = "berth:wake:"

// latest is the revision of a caller whom nobody has overtaken.
const latest = "17592186044415"

// writes are the arguments of a script that writes the name.
func writes(linger string, args ...string) []string {
	all := append([]string{linger, channel, "gpu"}, args...)
	for i, arg := range all {
		all[i] = ofNode(arg)
	}
	return all
}

// call is one of a script that writes the name.
type call struct {
	node, claim string
	args        []string
	asks        *ask          // of an acquire
	linger      time.Duration // of an acquire and a release
	stays       time.Duration // of a release
}

// written is the call of any script with the arguments that writes returned.
func written(args []string) call { return call{node: args[3], claim: args[4], args: args} }

// ofNode has an id begin as that of a node does, with 16 digits. The stories say n or m for those.
func ofNode(id string) string {
	if idOfNode.MatchString(id) {
		return id[:1] + "000000000000000" + id[1:]
	}
	return id
}

var idOfNode = regexp.MustCompile(`^[mn](n|-1|\d+)?(\..*)?$`)

// ask is a claim's acquire.
type ask struct {
	engine.Record
	claim            string
	capacity         int    // of a semaphore
	policy           string // of a semaphore: stored, strict, override
	conflict, access string // of a lock
	waits            int    // 0: it tries; of a lock also 2: without end
	linger           time.Duration
}

// acquire is the call of acquire.
func (w *world) acquire(t require.TestingT, a ask) (status string, plain bool) {
	own, policy := state.Calm(a.capacity), a.policy
	if w.kind == "lock" {
		a.Weight, own, policy = 1, "", "-"
		if a.Owner != "" || a.access != "queued" {
			own = fmt.Sprintf("%s %s 1000 %s", a.conflict, a.access, a.Owner)
		}
	} else {
		a.waits = min(a.waits, 1)
	}
	of, claim := asking(a.Node, a.linger), ofNode(a.claim)
	if w.asked == nil {
		w.asked = map[string]engine.Record{}
	}
	w.asked[claim] = a.Record
	return w.both(t, w.kind+"_acquire", call{
		node: of.Node, claim: claim, asks: &a, linger: a.linger,
		args: of.Acquire(claim, &a.Record, strconv.Itoa(a.waits), policy, own),
	})
}

// asking is what a node says in an acquire and a release.
func asking(node string, linger time.Duration) *line.Args {
	return &line.Args{Node: ofNode(node), Channel: channel, Name: "gpu", Linger: linger.Milliseconds()}
}

// release is the call of release by a node; stays is the tombstone, 0 for none.
func (w *world) release(t require.TestingT, claim, node string, stays, linger time.Duration) (status string, plain bool) {
	of, id := asking(node, linger), ofNode(claim)
	r, known := w.asked[id]
	if !known {
		r = w.plainly(claim).Record
	}
	return w.both(t, w.kind+"_release", call{
		node: of.Node, claim: id, linger: linger, stays: stays, args: of.Release(id, &r, stays.Milliseconds()),
	})
}

// plainly is an acquire that says nothing that the plain case would refuse.
func (w *world) plainly(claim string) ask {
	return ask{
		Record:   engine.Record{Weight: 1, Wait: time.Second, Lease: time.Second, Node: "n", Secret: secret},
		claim:    claim,
		capacity: w.capacity, policy: "stored", conflict: "fail", access: "queued", linger: 2 * time.Second,
	}
}

// with changes an ask.
func (a ask) with(change func(*ask)) ask {
	change(&a)
	return a
}

// forever is a hold without an end.
func forever(a *ask) { a.Lease = berth.Forever }
