package fast

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/model"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/tools/compose"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// releases are the scripts in two forms. In whole they have their plain case, and
// count in keys called like its functions how often it was taken. In general they
// never take it.
type releases struct{ whole, general *scriptkit.Library }

var parsed = sync.OnceValues(func() (releases, error) { return parse(compose.Scripts.Library) })

func parse(library func(compose.Scripts) *scriptkit.Library) (releases, error) {
	files := compose.Sources()
	whole, err := compose.Parse(wrapped(files, `--- @include "fast/%[2]sinner"
-- %[1]s counts how often it is taken.
local function %[1]s(...)
  local reply, a, b, c = %[1]sinner(...)
  if reply then
    redis.call("INCR", string.match(KEYS[1], "{.*}") .. "%[1]s")
  end
  return reply, a, b, c
end
`))
	if err != nil {
		return releases{}, err
	}
	general, err := compose.Parse(wrapped(files, `-- %[1]s (fast/%[2]s) leaves all to the general way.
local function %[1]s()
  return nil
end
`))
	return releases{library(whole), library(general)}, err
}

// wrapped is files with others in the place of the plain functions, which are called
// fast_acquireinner and so on there.
func wrapped(files fstest.MapFS, text string) fstest.MapFS {
	edited := fstest.MapFS{}
	for path, file := range files {
		edited[path] = file
	}
	for _, name := range slices.Concat(plains, poolPlains) {
		file := strings.TrimPrefix(name, "fast_")
		inner := strings.ReplaceAll(string(files["fast/"+file+".lua"].Data), "function "+name+"(", "function "+name+"inner(")
		edited["fast/"+file+"inner.lua"] = &fstest.MapFile{Data: []byte(inner)}
		edited["fast/"+file+".lua"] = &fstest.MapFile{Data: fmt.Appendf(nil, text, name, file)}
	}
	return edited
}

// copied is a copy of the name, at the keys of its twin.
func (w *world) copied(t require.TestingT) {
	w.do(t, "DEL", w.twin[0], w.twin[1])
	w.do(t, "COPY", w.state, w.twin[0])
	w.do(t, "COPY", w.line, w.twin[1])
}

// both runs a script on the name and, in its general form, on the twin, at the same
// instant. The replies, what is published and what is kept afterwards must be equal, and of
// one piece. The keys end together, and a claim that queues is told what the line holds. Where
// the call is one that a script of thin names may answer, that one does the same.
// It returns the status, and whether the plain case was taken.
func (w *world) both(t require.TestingT, script string, c call) (status string, plain bool) {
	now := w.Now()
	node, claim, args := c.node, c.claim, c.args
	was := w.dump(t, w.state, w.line)
	whole := was
	w.copied(t)
	thin := w.runThin(t, script, c)
	slight := w.dump(t, w.twin[0], w.twin[1])
	w.copied(t)
	beside := w.runBeside(t, script, args)
	besides := w.dump(t, w.twin[0], w.twin[1])
	w.copied(t)
	before := w.taken(t, plains)
	tb, ok := t.(model.TB)
	require.True(t, ok)
	_ = w.heard.Texts(tb)
	want := w.eval(t, w.general, script, w.twin[0], w.twin[1], args)
	told, made := w.heard.Texts(tb), w.dump(t, w.twin[0], w.twin[1])
	got := w.call(t, script, args...)
	plain = before != w.taken(t, plains)
	got = w.toldInFull(t, script, c, got)
	kept := w.dump(t, w.state, w.line)
	if c.ended(t, want) && plain { // it does not look at the clock
		got.([]any)[0] = "expired"
		made, kept = expiries.ReplaceAllString(made, "$1"), expiries.ReplaceAllString(kept, "$1")
	}
	require.Equal(t, trimmed(t, want), trimmed(t, got), "the reply of %s %q to\n%s", script, args, was)
	require.Equal(t, told, w.heard.Texts(tb), "what %s %q publishes on\n%s", script, args, was)
	require.Equal(t, made, kept, "what %s %q makes of\n%s", script, args, was)
	require.True(t, now.Equal(w.Now()), "all of that is one instant")
	reply := said(t, got)
	if fence, ok := reply[min(2, len(reply)-1)].(int64); ok && reply[0] == "granted" && w.fences[claim] != fence {
		// A claim that a hand-off has granted hears its fence now, when later ones may be known.
		if !strings.Contains(was, "c:"+claim+":g ") {
			require.Greater(t, fence, w.fence, "the fence of %s %q on\n%s", script, args, was)
		}
		w.fence, w.fences[claim] = max(fence, w.fence), fence
	}
	if reply[0] == "queued" {
		require.Len(t, reply, 10)
		flags, ok := reply[4].(int64)
		require.True(t, ok, "%v", got)
		require.Equal(t, w.nextDeadline(t, claim, node, fmt.Sprint(reply[7])), append(reply[8:10:10], flags/4), "ahead, next_ms and first of %s %q on\n%s", script, args, was)
	}
	if reply[0] != "incompatible" && !w.damaged && w.Library == nil {
		model.Whole(tb, w.Redis, w.state, w.line)
	}
	if w.thin = thin != nil; w.thin {
		require.Equal(t, trimmed(t, want), thin, "the reply for %s %q to\n%s", script, args, was)
		was = made
	}
	if lone := len(args) == 6 && strings.HasSuffix(script, "_renew"); lone {
		require.Equal(t, plain, beside != nil, "a beat beside those of others is as plain as alone: %q on\n%s", args, was)
	}
	switch {
	case beside != nil:
		require.Equal(t, said(t, want)[4:], beside, "the reply for %q beside others to\n%s", args, was)
		require.Equal(t, made, besides, "what is made for %q beside others", args)
	case !w.damaged: // else the line may lack the hold
		require.Equal(t, whole, besides, "what is made for %q beside others; what is not plain writes nothing", args)
	}
	require.Equal(t, was, slight, "what is made for %s %q; what says fat writes nothing", script, args)
	return fmt.Sprint(reply[0]), plain
}

// expiries are when the keys of a name expire, in a dump.
var expiries = regexp.MustCompile(`(\bv:3 \d{16} |\] )\d{13}`)

// ended says whether a call was the release of a hold that had expired, in the general way.
func (c *call) ended(t require.TestingT, reply any) bool {
	return c.asks == nil && said(t, reply)[0] == "expired"
}

// toldInFull is what a plain case says in one text, as the general way says it.
func (w *world) toldInFull(t require.TestingT, script string, c call, got any) any {
	text, ok := got.(string)
	switch words := strings.Fields(text); {
	case !ok && strings.HasSuffix(script, "_renew"):
		reply := said(t, got)
		if reply[0] != "held" {
			return got
		}
		require.Len(t, reply, 1+len(c.args[4:]))
		told := []any{"renewed", int64(-1), int64(0), w.value(t, "cap")}
		for i := 1; i < len(reply); i += 2 {
			told = append(told, "held", reply[i], reply[i+1])
		}
		return told
	case !ok:
		return got
	case c.asks == nil:
		return []any{"released", int64(0), text}
	case len(words) == 1:
		fence, err := strconv.ParseInt(text, 10, 64)
		require.NoError(t, err)
		return []any{"granted", fence / 1000, fence, c.asks.Lease.Milliseconds(), int64(1), w.setting(c)}
	default:
		require.Len(t, words, 4)
		first, err := strconv.ParseInt(words[1], 10, 64)
		require.NoError(t, err)
		return []any{
			"queued", words[0], int64(0), c.asks.Wait.Milliseconds(), 4 * first, w.setting(c), "",
			fmt.Sprintf("%s %013s", line.Lane(c.asks.Priority), words[0]), words[3], words[2],
		}
	}
}

// setting is what the general way says of the capacity.
func (w *world) setting(c call) int64 {
	if w.kind == "lock" {
		return 1
	}
	return int64(c.asks.capacity)
}

// runThin has the script of thin names answer a call on the twin, if it is one that it may be
// asked to: see internal/line. It returns the reply as the general one is, nil for none.
func (w *world) runThin(t require.TestingT, script string, c call) []any {
	own := strings.HasPrefix(c.claim, c.node+".")
	run := func(script string, args ...string) any {
		reply := w.do(t, append([]string{"EVAL", w.whole.Script(script).Source(), "1", w.twin[0]}, args...)...)
		if words, ok := reply.([]any); ok && words[0] == "fat" {
			require.Len(t, words, 1)
			return nil
		}
		return reply
	}
	switch {
	case c.asks != nil && own && strings.Count(c.claim, ".") == strings.Count(c.node, ".")+1:
		r, terms := c.asks.Record, state.FixedTerms(&c.asks.Record)
		if r.Weight != 1 || w.kind == "semaphore" && c.asks.capacity != 1 || r.Lease == berth.Forever || r.Lease > min(r.Wait, c.linger) || len(terms) > 512 {
			return nil
		}
		reply := run("thin_acquire", c.claim, terms, millis(r.Lease+c.linger))
		if reply == nil {
			return nil
		}
		if r.MaxHold > 0 {
			r.Lease = min(r.Lease, r.MaxHold)
		}
		fence, err := strconv.ParseInt(fmt.Sprint(reply), 10, 64)
		require.NoError(t, err)
		return []any{"granted", fence / 1000, fence, r.Lease.Milliseconds(), int64(1), int64(1)}
	case strings.HasSuffix(script, "_release") && own && c.stays == 0:
		before, expires := fmt.Sprint(w.do(t, "MGET", w.twin[0]).([]any)[0]), w.do(t, "PEXPIRETIME", w.twin[0])
		reply := run("thin_release", c.claim)
		if reply == nil {
			return nil
		}
		require.Equal(t, expires, w.do(t, "PEXPIRETIME", w.twin[0])) // later than it need be, where the hold had not ended
		w.do(t, "PEXPIREAT", w.twin[0], strconv.FormatInt(w.Now().Add(c.linger).UnixMilli(), 10))
		held, err := testkit.ParseThin(before)
		require.NoError(t, err)
		require.Equal(t, strconv.FormatInt(held.Fence, 10), reply)
		if held.Ends <= w.Now().UnixMilli() {
			return []any{"expired", int64(0), held.Fence}
		}
		return []any{"released", int64(0), held.Fence}
	case strings.HasSuffix(script, "_renew") && own && len(c.args) == 6 && c.args[5] == "beat":
		if reply := w.beside(t, "thin_renew", w.twin[:1], []string{c.args[0]}, c.claim); reply != nil {
			return append([]any{"renewed", int64(-1), int64(0), int64(1)}, reply...)
		}
	}
	return nil
}

// runBeside has the script of fat names answer the heartbeat of one claim on the twin, beside those on other names. It
// returns what the general one says of the claim, nil for none.
func (w *world) runBeside(t require.TestingT, script string, args []string) []any {
	if len(args) != 6 || args[5] != "beat" || !strings.HasSuffix(script, "_renew") {
		return nil
	}
	return w.beside(t, "fat_renew", w.twin[:], []string{args[0], args[3]}, args[4])
}

// beside runs a script of several names on some keys of the twin, between names whose keys are not there, hold something else,
// and are damaged. It returns the words of the claim on the twin, nil where the script cannot tell; of those on the others it
// never can.
func (w *world) beside(t require.TestingT, script string, keys, args []string, claim string) []any {
	at := func(key string) string { return key + "{" + w.name + "}" }
	none, list, hash, set, text := at("none"), at("list"), at("hash"), at("set"), at("text")
	all, others := slices.Clone(args), [][]string{{none, none}, {list, list}, {hash, set}, {text, set}}
	w.do(t, "RPUSH", list, "x")
	w.do(t, "HSET", hash, "c:"+claim, "h "+strings.Repeat("0 ", 50), "v", "3 "+strings.Repeat("x", 115)+"0 0 0 0 0 0")
	w.do(t, "SADD", set, "h:"+claim)
	w.do(t, "SET", text, strings.Repeat("x", 31)+" "+claim+" - 1 r 1 99999999999999999999 0 ")
	place := len(claim) % (len(others) + 1)
	var with []string
	for _, of := range slices.Insert(slices.Clone(others), place, keys) {
		with, all = append(with, of[:len(keys)]...), append(all, claim)
	}
	reply := said(t, w.do(t, slices.Concat([]string{"EVAL", w.whole.Script(script).Source(), strconv.Itoa(len(with))}, with, all)...))
	require.Len(t, reply, 1+2*(len(others)+1))
	w.do(t, "DEL", list, hash, set, text)
	own := reply[1+2*place : 3+2*place]
	for _, word := range slices.Delete(slices.Clone(reply), 1+2*place, 3+2*place)[1:] {
		require.Equal(t, int64(0), word, "%v", reply)
	}
	if own[0] == int64(0) {
		return nil
	}
	return []any{"held", own[0], own[1]}
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

// nextDeadline is what a waiting claim of a node has to be told, by where it stands and what the line
// holds: how many are ahead of it, how soon a hold or the first in line ends (ms), and 1 if the
// first in line is the node's.
func (w *world) nextDeadline(t require.TestingT, claim, node, place string) []any {
	const width = state.Width
	var waiting []string
	next := int64(width - 1)
	members, ok := w.do(t, "ZRANGE", w.line, "0", "-1", "WITHSCORES").([]any)
	require.True(t, ok)
	for i := 0; i < len(members); i += 2 {
		member := fmt.Sprint(members[i])
		score, err := strconv.ParseInt(fmt.Sprint(members[i+1]), 10, 64)
		require.NoError(t, err)
		if strings.HasPrefix(member, "h:") {
			next = min(next, score-width)
		} else if score < 512 {
			waiting = append(waiting, fmt.Sprintf("%03d %s", score, member))
		}
	}
	_, first, _ := strings.Cut(waiting[0], "-")
	if text, ok := w.do(t, "HGET", w.state, "c:"+first).(string); ok {
		r, err := state.ParseRecord(text)
		require.NoError(t, err)
		next = min(next, r.Alive().UnixMilli())
	}
	if end := w.value(t, "pause"); end > w.Now().UnixMilli() {
		next = end // nothing comes free before
	}
	mine := int64(0)
	if strings.HasPrefix(first, node+".") {
		mine = 1
	}
	return []any{int64(slices.Index(waiting, place+"-"+claim)), max(next-w.Now().UnixMilli(), 0), mine}
}
