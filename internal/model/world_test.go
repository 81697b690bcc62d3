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
	"github.com/berth-go/berth/internal/model"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/scripts"
)

// plains are the functions that are the plain case.
var plains = []string{"quick_acquire", "quick_release", "quick_heir", "quick_renew"}

// thins are the scripts of thin names.
var thins = []string{"thin_acquire", "thin_release", "thin_renew"}

// turns are the ways in which a name goes from one form to the other.
var turns = []string{"thin to fat", "fat to thin"}

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
	for _, name := range slices.Concat(plains, lends) {
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
	*testkit.World
	releases
	kind        string // lock or semaphore
	state, line string
	twin        [2]string
	backup      [2]string
	fence       int64            // the last that a reply has named
	fences      map[string]int64 // by claim
	pushes      *pushes
	thin        bool // the last call was one that a script of thin names answers
	damaged     bool // by hand, so that what is kept need not be of one piece
	capacity    int  // what the claims name, of a semaphore
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
		time.Sleep(time.Until(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))) // as many digits as of now
		server, err := embedded.Start()
		require.NoError(t, err)
		defer server.Close()
		redis, err := server.Client(testkit.RarePings)
		require.NoError(t, err)
		defer redis.Close()
		w := &testkit.World{T: t, Server: server, Redis: redis, Began: time.Now()}
		heard := listen(t.Context(), redis)
		at := func(name, part string) string { return "berth:{" + name + "}:" + part }
		test(t, func(name string) *stage {
			return &stage{
				World: w, releases: both, kind: kind, state: at(name, "state"), line: at(name, "line"),
				twin: [2]string{at("twin", "state"), at("twin", "line")}, backup: [2]string{at("backup", "state"), at("backup", "line")}, pushes: heard, capacity: 2, fences: map[string]int64{},
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
	const script = `return redis.call("MGET", KEYS[1])[1] or redis.call("HGETALL", KEYS[1])`
	return fmt.Sprintln(s.do(t, "EVAL", script, "1", state), s.do(t, "PEXPIRETIME", state),
		s.do(t, "ZRANGE", line, "0", "-1", "WITHSCORES"), s.do(t, "PEXPIRETIME", line))
}

// copied is a copy of the name, at the keys of its twin.
func (s *stage) copied(t require.TestingT) {
	s.do(t, "DEL", s.twin[0], s.twin[1])
	s.do(t, "COPY", s.state, s.twin[0])
	s.do(t, "COPY", s.line, s.twin[1])
}

// both runs a script on the name and, in its general form, on the twin, at the same
// instant. The replies, what is published and what is kept afterwards must be equal, and of
// one piece. The keys end together, and a claim that queues is told what the line holds. Where
// the call is one that a script of thin names may answer, that one does the same.
// It returns the status, and whether the plain case was taken.
func (s *stage) both(t require.TestingT, script string, args ...string) (status string, plain bool) {
	now, before := time.Now(), s.taken(t, plains)
	node, claim := args[3], args[4]
	was, form := s.dump(t, s.state, s.line), s.form(t)
	s.copied(t)
	thin := s.runThin(t, script, args)
	slight := s.dump(t, s.twin[0], s.twin[1])
	s.copied(t)
	_ = s.pushes.take()
	want := s.eval(t, s.general, script, s.twin[0], s.twin[1], args)
	told, made := s.pushes.take(), s.dump(t, s.twin[0], s.twin[1])
	got := s.call(t, script, args...)
	plain = before != s.taken(t, plains)
	if turned := form + " to " + s.form(t); slices.Contains(turns, turned) {
		s.do(t, "INCR", turned)
	}
	require.Equal(t, trimmed(t, want), trimmed(t, got), "the reply of %s %q to\n%s", script, args, was)
	require.Equal(t, told, s.pushes.take(), "what %s %q publishes on\n%s", script, args, was)
	require.Equal(t, made, s.dump(t, s.state, s.line), "what %s %q makes of\n%s", script, args, was)
	require.True(t, now.Equal(time.Now()), "all of that is one instant")
	reply := said(t, got)
	if fence, ok := reply[min(2, len(reply)-1)].(int64); ok && reply[0] == "granted" && s.fences[claim] != fence {
		require.Greater(t, fence, s.fence, "the fence of %s %q on\n%s", script, args, was)
		s.fence, s.fences[claim] = fence, fence
	}
	if reply[0] == "queued" {
		require.Len(t, reply, 10)
		flags, ok := reply[4].(int64)
		require.True(t, ok, "%v", got)
		require.Equal(t, s.tide(t, claim, node, fmt.Sprint(reply[7])), append(reply[8:10:10], flags/4), "ahead, next_ms and first of %s %q on\n%s", script, args, was)
	}
	if reply[0] != "incompatible" && !s.damaged {
		tb, ok := t.(model.TB)
		require.True(t, ok)
		model.Whole(tb, s.Redis, s.state, s.line)
	}
	if s.thin = thin != nil; s.thin {
		require.Equal(t, trimmed(t, want), thin, "the reply for %s %q to\n%s", script, args, was)
		was = made
	}
	require.Equal(t, was, slight, "what is made for %s %q; what says fat writes nothing", script, args)
	return fmt.Sprint(reply[0]), plain
}

// value is one of the numbers of the name.
func (s *stage) value(t require.TestingT, name string) int64 {
	if text, ok := s.text(t); ok {
		thin, err := testkit.ParseThin(text)
		require.NoError(t, err)
		return thin.Counts(time.Now().UnixMilli())[name]
	}
	counts, err := testkit.Counts(fmt.Sprint(s.do(t, "HGET", s.state, "v")))
	require.NoError(t, err)
	return counts[name]
}

// text is that of a thin name.
func (s *stage) text(t require.TestingT) (text string, thin bool) {
	words, ok := s.do(t, "MGET", s.state).([]any)
	require.True(t, ok)
	text, thin = words[0].(string)
	return text, thin
}

// form is thin, fat or none.
func (s *stage) form(t require.TestingT) string {
	if _, thin := s.text(t); thin {
		return "thin"
	}
	if s.do(t, "EXISTS", s.state) == int64(0) {
		return "none"
	}
	return "fat"
}

// setValue has the name keep another number than it does, if it is there, and has such a number:
// fmt or fence where it is thin.
func (s *stage) setValue(t require.TestingT, name string, n int64) {
	text, thin := s.text(t)
	switch {
	case !thin && s.do(t, "EXISTS", s.state) == int64(1):
		text, ok := s.do(t, "HGET", s.state, "v").(string)
		require.True(t, ok)
		s.do(t, "HSET", s.state, "v", testkit.WithCount(t, text, name, n))
	case thin && name == "fence":
		s.do(t, "SETRANGE", s.state, "0", fmt.Sprintf("%016d", n))
	case thin && name == "fmt" && n == 2:
		s.do(t, "SET", s.state, strings.TrimPrefix(text, "f3 "), "KEEPTTL")
	case thin && name == "fmt":
		s.do(t, "SET", s.state, fmt.Sprintf("f%d %s", n, text), "KEEPTTL")
	}
}

// runThin has the script of thin names answer a call on the twin, if it is one that it may be
// asked to: see internal/line. It returns the reply as the general one is, nil for none.
func (s *stage) runThin(t require.TestingT, script string, args []string) []any {
	linger, node, claim := args[0], args[3], args[4]
	own := strings.HasPrefix(claim, node+".")
	run := func(script string, args ...string) []any {
		reply := said(t, s.do(t, append([]string{"EVAL", s.whole.Script(script).Source, "1", s.twin[0]}, args...)...))
		if reply[0] == "fat" {
			require.Len(t, reply, 1)
			return nil
		}
		s.do(t, "INCR", script)
		return reply
	}
	switch {
	case strings.HasSuffix(script, "_acquire") && own && strings.Count(claim, ".") == strings.Count(node, ".")+1:
		r, err := line.ParseRecord("w n 0 0 0 0 " + args[7])
		require.NoError(t, err)
		stays, err := time.ParseDuration(linger + "ms")
		require.NoError(t, err)
		if r.Weight != 1 || s.kind == "semaphore" && args[8] != "1" || r.Lease > min(r.Wait, stays) || len(args[7]) > 512 {
			return nil
		}
		reply := run("thin_acquire", claim, args[7], millis(r.Lease+stays))
		if reply == nil {
			return nil
		}
		if r.MaxHold > 0 {
			r.Lease = min(r.Lease, r.MaxHold)
		}
		fence, ok := reply[1].(int64)
		require.True(t, ok, "%v", reply)
		return []any{"granted", fence / 1000, fence, r.Lease.Milliseconds(), int64(1), int64(1)}
	case strings.HasSuffix(script, "_release") && own && args[5] == "0":
		before, expires := fmt.Sprint(s.do(t, "MGET", s.twin[0]).([]any)[0]), s.do(t, "PEXPIRETIME", s.twin[0])
		if run("thin_release", claim) == nil {
			return nil
		}
		require.Equal(t, expires, s.do(t, "PEXPIRETIME", s.twin[0])) // later than it need be, where the hold had not ended
		s.do(t, "PEXPIRE", s.twin[0], linger)
		held, err := testkit.ParseThin(before)
		require.NoError(t, err)
		if held.Ends <= time.Now().UnixMilli() {
			return []any{"expired", int64(0), held.Fence}
		}
		return []any{"released", int64(0), held.Fence}
	case strings.HasSuffix(script, "_renew") && own && len(args) == 6 && args[5] == "beat":
		if reply := run("thin_renew", claim, linger); reply != nil {
			return []any{"renewed", int64(-1), int64(0), int64(1), "held", reply[1], reply[2]}
		}
	}
	return nil
}

// said are the words of a reply: where one is a number, it may also be the text of one.
func said(t require.TestingT, reply any) []any {
	words, ok := reply.([]any)
	require.True(t, ok && len(words) > 0, "%v", reply)
	words = slices.Clone(words)
	for i, word := range words {
		if n, err := strconv.ParseInt(fmt.Sprint(word), 10, 64); err == nil {
			words[i] = n
		}
	}
	return words
}

// trimmed is what was said without what is 0 or "" at its end: the two ways may leave it away.
func trimmed(t require.TestingT, reply any) []any {
	words := said(t, reply)
	for len(words) > 0 && (words[len(words)-1] == int64(0) || words[len(words)-1] == "") {
		words = words[:len(words)-1]
	}
	return words
}

// tide is what a waiting claim of a node has to be told, by where it stands and what the line
// holds: how many are ahead of it, how soon a hold or the first in line ends (ms), and 1 if the
// first in line is the node's.
func (s *stage) tide(t require.TestingT, claim, node, place string) []any {
	const band = 1 << 44
	var waiting []string
	next := int64(band - 1)
	members, ok := s.do(t, "ZRANGE", s.line, "0", "-1", "WITHSCORES").([]any)
	require.True(t, ok)
	for i := 0; i < len(members); i += 2 {
		member := fmt.Sprint(members[i])
		score, err := strconv.ParseInt(fmt.Sprint(members[i+1]), 10, 64)
		require.NoError(t, err)
		if strings.HasPrefix(member, "h:") {
			next = min(next, score-band)
		} else if score < 512 {
			waiting = append(waiting, fmt.Sprintf("%03d %s", score, member))
		}
	}
	_, first, _ := strings.Cut(waiting[0], "-")
	if text, ok := s.do(t, "HGET", s.state, "c:"+first).(string); ok {
		r, err := line.ParseRecord(text)
		require.NoError(t, err)
		heard, err := strconv.ParseInt(strings.Fields(text)[4], 10, 64)
		require.NoError(t, err)
		next = min(next, heard+r.Wait.Milliseconds())
	}
	mine := int64(0)
	if strings.HasPrefix(first, node+".") {
		mine = 1
	}
	return []any{int64(slices.Index(waiting, place+"-"+claim)), max(next-time.Now().UnixMilli(), 0), mine}
}

// taken is how often each of some ways, the plain functions or the scripts of thin names, was taken.
func (s *stage) taken(t require.TestingT, ways []string) string {
	return fmt.Sprint(s.do(t, append([]string{"MGET"}, ways...)...))
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
	own := []string{strconv.Itoa(a.capacity), a.policy}
	if s.kind == "lock" {
		own, a.Weight = []string{""}, 1
		if a.Owner != "" || a.access != "queued" {
			own[0] = fmt.Sprintf("%s %s 1000 %s", a.conflict, a.access, a.Owner)
		}
	} else {
		a.waits = min(a.waits, 1)
	}
	return s.both(t, s.kind+"_acquire", writes(millis(a.linger), append([]string{
		a.Node, a.claim, strconv.Itoa(a.waits), line.Lane(a.Priority), line.Tail(&a.Record),
	}, own...)...)...)
}

// release is the call of release by a node; stays is the tombstone, 0 for none.
func (s *stage) release(t require.TestingT, claim, node string, stays, linger time.Duration) (status string, plain bool) {
	return s.both(t, s.kind+"_release", writes(millis(linger), node, claim, millis(stays))...)
}

// plainly is an acquire that says nothing that the plain case would refuse.
func (s *stage) plainly(claim string) ask {
	return ask{
		Record:   engine.Record{Weight: 1, Wait: 5 * time.Second, Lease: time.Second, Node: "n"},
		claim:    claim,
		capacity: s.capacity, policy: "stored", conflict: "fail", access: "queued", linger: 2 * time.Second,
	}
}

// with changes an ask.
func (a ask) with(change func(*ask)) ask {
	change(&a)
	return a
}

// forever is a hold without an end.
func forever(a *ask) { a.Lease = berth.Forever }
