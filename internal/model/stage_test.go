package model_test

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/model/world"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/scripts"
)

// plains are the functions that are the plain case.
var plains = []string{"quick_grant", "quick_release", "quick_handoff", "quick_renew"}

// releases are the scripts in two forms. In whole they have their plain case, and
// count in keys called like its functions how often it was taken. In general they
// never take it.
type releases struct{ whole, general *scriptkit.Library }

var parsed = sync.OnceValues(func() (releases, error) {
	files := fstest.MapFS{}
	err := fs.WalkDir(scripts.FS, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := scripts.FS.ReadFile(path)
		files[path] = &fstest.MapFile{Data: text}
		return err
	})
	if err != nil {
		return releases{}, err
	}
	whole, err := scriptkit.Parse(wrapped(files, `--- @include "quick/%[2]sinner"
-- %[1]s counts how often it is taken.
local function %[1]s(...)
  local reply, next_up = %[1]sinner(...)
  if reply then
    redis.call("INCR", "%[1]s")
  end
  return reply, next_up
end
`))
	if err != nil {
		return releases{}, err
	}
	general, err := scriptkit.Parse(wrapped(files, `-- %[1]s (quick/%[2]s) leaves all to the general way.
local function %[1]s()
  return nil
end
`))
	return releases{whole, general}, err
})

// wrapped is files with others in the place of the plain functions, which are called
// quick_grantinner and so on there.
func wrapped(files fstest.MapFS, text string) fstest.MapFS {
	edited := fstest.MapFS{}
	for path, file := range files {
		edited[path] = file
	}
	for _, name := range plains {
		file := strings.TrimPrefix(name, "quick_")
		inner := strings.ReplaceAll(string(files["quick/"+file+".lua"].Data), "function "+name+"(", "function "+name+"inner(")
		edited["quick/"+file+"inner.lua"] = &fstest.MapFile{Data: []byte(inner)}
		edited["quick/"+file+".lua"] = &fstest.MapFile{Data: fmt.Appendf(nil, text, name, file)}
	}
	return edited
}

// stage is a name on a server in virtual time, and its twin, a copy on which the
// scripts run that never take the plain case.
type stage struct {
	*world.World
	releases
	kind        string // lock or semaphore
	state, line string
	twin        [2]string
	pushes      *pushes
}

// pushes are the messages that were published.
type pushes struct {
	mu  sync.Mutex
	all []string // guarded by mu
}

// take returns those that have come since it was called last.
func (p *pushes) take() []string {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.all
	p.all = nil
	return all
}

// listen hears all that is published until the context ends.
func listen(ctx context.Context, redis rueidis.Client) *pushes {
	p := &pushes{}
	go func() {
		_ = redis.Receive(ctx, redis.B().Psubscribe().Pattern("*").Build(), func(m rueidis.PubSubMessage) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.all = append(p.all, m.Channel+" "+m.Message)
		}) // the context's end
	}()
	synctest.Wait()
	return p
}

// onStage runs a test in virtual time, beside others, on names that nobody has used
// yet.
func onStage(t *testing.T, kind string, test func(t *testing.T, stage func(name string) *stage)) {
	t.Helper()
	t.Parallel()
	both, err := parsed()
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		server, err := embedded.Start()
		require.NoError(t, err)
		defer server.Close()
		redis, err := server.Client(world.RarePings)
		require.NoError(t, err)
		defer redis.Close()
		w := &world.World{T: t, Server: server, Redis: redis, Began: time.Now()}
		heard := listen(t.Context(), redis)
		at := func(name, part string) string { return "berth:{" + name + "}:" + part }
		test(t, func(name string) *stage {
			return &stage{
				World: w, releases: both, kind: kind, state: at(name, "state"), line: at(name, "line"),
				twin: [2]string{at("twin", "state"), at("twin", "line")}, pushes: heard,
			}
		})
	})
}

// do runs a command, and returns its answer, nil for none.
func (s *stage) do(t require.TestingT, words ...string) any {
	answer, err := s.Redis.Do(context.Background(), s.Redis.B().Arbitrary(words...).Build()).ToAny()
	if !rueidis.IsRedisNil(err) {
		require.NoError(t, err, "%.300q", words)
	}
	return answer
}

// eval runs a script, and returns its reply.
func (s *stage) eval(t require.TestingT, from *scriptkit.Library, script, state, line string, args []string) any {
	words := append([]string{"EVAL", from.Script(script).Source, "2", state, line}, args...)
	return s.do(t, words...)
}

// call runs a script on the name, and returns its reply.
func (s *stage) call(t require.TestingT, script string, args ...string) any {
	return s.eval(t, s.whole, script, s.state, s.line, args)
}

// dump is all that the server has of a name.
func (s *stage) dump(t require.TestingT, state, line string) string {
	return fmt.Sprintln(s.do(t, "HGETALL", state), s.do(t, "PEXPIRETIME", state),
		s.do(t, "ZRANGE", line, "0", "-1", "WITHSCORES"), s.do(t, "PEXPIRETIME", line))
}

// both runs a script on the name and, in its general form, on the twin, at the same
// instant. The replies, what is published and what is kept afterwards must be equal. The
// keys end together, and a claim that queues is told what the line holds.
// It returns the status, and whether the plain case was taken.
func (s *stage) both(t require.TestingT, script string, args ...string) (status string, plain bool) {
	now, before := time.Now(), s.taken(t)
	node, claim := args[3], args[4]
	s.do(t, "DEL", s.twin[0], s.twin[1])
	s.do(t, "COPY", s.state, s.twin[0])
	s.do(t, "COPY", s.line, s.twin[1])
	was := s.dump(t, s.state, s.line)
	_ = s.pushes.take()
	want := s.eval(t, s.general, script, s.twin[0], s.twin[1], args)
	told := s.pushes.take()
	got := s.call(t, script, args...)
	plain = before != s.taken(t)
	require.Equal(t, s.says(t, want, plain), s.says(t, got, plain), "the reply of %s %q to\n%s", script, args, was)
	require.Equal(t, told, s.pushes.take(), "what %s %q publishes on\n%s", script, args, was)
	require.Equal(t, s.dump(t, s.twin[0], s.twin[1]), s.dump(t, s.state, s.line), "what %s %q makes of\n%s", script, args, was)
	require.True(t, now.Equal(time.Now()), "all of that is one instant")
	reply, ok := got.([]any)
	require.True(t, ok && len(reply) > 0, "%v", got)
	if reply[0] == "queued" {
		require.Len(t, reply, 10)
		flags, ok := reply[4].(int64)
		require.True(t, ok, "%v", got)
		require.Equal(t, s.tide(t, claim, node), append(reply[8:10:10], flags/4), "ahead, next_ms and first of %s %q on\n%s", script, args, was)
	}
	require.Equal(t, s.do(t, "PEXPIRETIME", s.state), s.either(t, "PEXPIRETIME", s.line, s.state), "%s %q leaves keys that end apart", script, args)
	return fmt.Sprint(reply[0]), plain
}

// says is a reply without what the two ways may write otherwise: what is 0 or "" at its
// end may be missing, and where the plain case was taken, nobody looks at the setting of
// a lock.
func (s *stage) says(t require.TestingT, reply any, plain bool) []any {
	words, ok := reply.([]any)
	require.True(t, ok && len(words) > 0, "%v", reply)
	words = slices.Clone(words)
	setting := map[any]int{"granted": 5, "renewed": 3}[words[0]]
	if s.kind == "lock" && plain && setting > 0 && setting < len(words) {
		require.Contains(t, []any{int64(0), int64(1)}, words[setting], "the setting in %v", reply)
		words[setting] = int64(0)
	}
	for len(words) > 0 && (words[len(words)-1] == int64(0) || words[len(words)-1] == "") {
		words = words[:len(words)-1]
	}
	return words
}

// either runs a command on the first of two keys that exists.
func (s *stage) either(t require.TestingT, command, key, other string) any {
	if s.do(t, "EXISTS", key) == int64(0) {
		key = other
	}
	return s.do(t, command, key)
}

// tide is what a waiting claim of a node has to be told, by what the line holds: how
// many are ahead of it, how soon a hold or the first in line ends (ms), and 1 if the
// first in line is the node's.
func (s *stage) tide(t require.TestingT, claim, node string) []any {
	const band = 1 << 44
	scores := map[string]int64{}
	first, ahead, next := "", int64(0), int64(band-1)
	line, ok := s.do(t, "ZRANGE", s.line, "0", "-1", "WITHSCORES").([]any)
	require.True(t, ok)
	for i := 0; i < len(line); i += 2 {
		member := fmt.Sprint(line[i])
		score, err := strconv.ParseInt(fmt.Sprint(line[i+1]), 10, 64)
		require.NoError(t, err)
		scores[member] = score
		switch {
		case strings.HasPrefix(member, "h:"):
			next = min(next, score)
		case strings.HasPrefix(member, "q:") && first == "":
			first = member[2:]
		}
	}
	for member, score := range scores {
		if strings.HasPrefix(member, "q:") && score < scores["q:"+claim] {
			ahead++
		}
	}
	next = min(next, scores["a:"+first]-band)
	mine := int64(0)
	if strings.HasPrefix(first, node+".") {
		mine = 1
	}
	return []any{ahead, max(next-time.Now().UnixMilli(), 0), mine}
}

// taken is how often each of the plain functions was taken.
func (s *stage) taken(t require.TestingT) string {
	return fmt.Sprint(s.do(t, append([]string{"MGET"}, plains...)...))
}

const channel = "berth:wake:"

// writes are the arguments of a script that writes the name.
func writes(linger string, args ...string) []string {
	return append([]string{linger, channel, "gpu"}, args...)
}

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
func (s *stage) acquire(t require.TestingT, a ask) (status string, plain bool) {
	own := []string{a.Owner, a.conflict, a.access, "1000"}
	if s.kind == "lock" {
		a.Weight = 1
	} else {
		a.waits = min(a.waits, 1)
		own = []string{strconv.Itoa(a.Weight), strconv.Itoa(a.capacity), a.policy}
	}
	return s.both(t, s.kind+"_acquire", writes(millis(a.linger), append([]string{
		a.Node, a.claim, strconv.Itoa(a.waits), strconv.Itoa(a.Priority), millis(a.Wait),
		strconv.FormatInt(a.LeaseMillis(), 10), millis(a.MaxHold), line.Tail(&a.Record),
	}, own...)...)...)
}

// release is the call of release by a node; stays is the tombstone, 0 for none.
func (s *stage) release(t require.TestingT, claim, node string, stays, linger time.Duration) (status string, plain bool) {
	return s.both(t, s.kind+"_release", writes(millis(linger), node, claim, millis(stays))...)
}

// plainly is an acquire that says nothing that the plain case would refuse.
func plainly(claim string) ask {
	return ask{
		Record:   engine.Record{Weight: 1, Wait: 5 * time.Second, Lease: time.Second, Node: "n"},
		claim:    claim,
		capacity: 2, policy: "stored", conflict: "fail", access: "queued", linger: 2 * time.Second,
	}
}

// with changes an ask.
func (a ask) with(change func(*ask)) ask {
	change(&a)
	return a
}

// forever is a hold without an end.
func forever(a *ask) { a.Lease = berth.Forever }
