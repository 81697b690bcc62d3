package model_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

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

var parsed = sync.OnceValues(func() (releases, error) {
	files := compose.Sources()
	whole, err := compose.Parse(wrapped(files, `--- @include "fast/%[2]sinner"
-- %[1]s counts how often it is taken.
local function %[1]s(...)
  local reply, next_up = %[1]sinner(...)
  if reply then
    redis.call("INCR", "%[1]s")
  end
  return reply, next_up
end%.0[3]s
`))
	if err != nil {
		return releases{}, err
	}
	general, err := compose.Parse(wrapped(files, `-- %[1]s (fast/%[2]s) leaves all to the general way.
local function %[1]s(...)
  if select("#", ...) == 0 then
    return %[3]s -- as its script's RETURNS says; nobody calls it so
  end
  return nil
end
`))
	return releases{whole.Library(), general.Library()}, err
})

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
		says := map[bool]string{true: `{ "joined" }`, false: `{ "plain" }`}[file == "wait"]
		if strings.HasSuffix(file, "renew") {
			says = "nil"
		}
		edited["fast/"+file+".lua"] = &fstest.MapFile{Data: fmt.Appendf(nil, text, name, file, says)}
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
func (w *world) both(t require.TestingT, script string, args ...string) (status string, plain bool) {
	now, before := time.Now(), w.taken(t, plains)
	node, claim := args[3], args[4]
	was := w.dump(t, w.state, w.line)
	w.copied(t)
	thin := w.runThin(t, script, args)
	slight := w.dump(t, w.twin[0], w.twin[1])
	w.copied(t)
	_ = w.pushes.take()
	want := w.eval(t, w.general, script, w.twin[0], w.twin[1], args)
	told, made := w.pushes.take(), w.dump(t, w.twin[0], w.twin[1])
	got := w.call(t, script, args...)
	plain = before != w.taken(t, plains)
	got = w.toldInFull(t, script, args, got)
	require.Equal(t, trimmed(t, want), trimmed(t, got), "the reply of %s %q to\n%s", script, args, was)
	require.Equal(t, told, w.pushes.take(), "what %s %q publishes on\n%s", script, args, was)
	require.Equal(t, made, w.dump(t, w.state, w.line), "what %s %q makes of\n%s", script, args, was)
	require.True(t, now.Equal(time.Now()), "all of that is one instant")
	reply := said(t, got)
	if fence, ok := reply[min(2, len(reply)-1)].(int64); ok && reply[0] == "granted" && w.fences[claim] != fence {
		// A claim that a hand-off has granted hears its fence now, when later ones may be known.
		if !strings.Contains(was, "c:"+claim+" g ") {
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
	if reply[0] != "incompatible" && !w.damaged {
		tb, ok := t.(model.TB)
		require.True(t, ok)
		model.Whole(tb, w.Redis, w.state, w.line)
	}
	if w.thin = thin != nil; w.thin {
		require.Equal(t, trimmed(t, want), thin, "the reply for %s %q to\n%s", script, args, was)
		was = made
	}
	require.Equal(t, was, slight, "what is made for %s %q; what says fat writes nothing", script, args)
	return fmt.Sprint(reply[0]), plain
}

// toldInFull is what a plain case says in fewer words, as the general way says it.
func (w *world) toldInFull(t require.TestingT, script string, args []string, got any) any {
	reply := said(t, got)
	lock, capacity := w.kind == "lock", any(int64(1))
	if !lock && strings.HasSuffix(script, "_acquire") {
		n, err := strconv.ParseInt(args[8], 10, 64)
		require.NoError(t, err)
		capacity = n - state.Base
	}
	switch {
	case reply[0] == "plain" && strings.HasSuffix(script, "_release"):
		require.Len(t, reply, 2)
		return []any{"released", int64(0), reply[1]}
	case reply[0] == "plain":
		require.Len(t, reply, 2)
		fence, ok := reply[1].(int64)
		require.True(t, ok)
		return []any{"granted", fence / 1000, fence, args[len(args)-2], int64(1), capacity}
	case reply[0] == "joined":
		r, err := state.ParseRecord("w 0 0 0 n " + args[7])
		require.NoError(t, err)
		require.Len(t, reply, 5)
		return []any{"queued", reply[1], int64(0), r.Wait.Milliseconds(), reply[4], capacity, "", fmt.Sprintf("%s %013d", args[6], reply[1]), reply[2], reply[3]}
	}
	return got
}

// runThin has the script of thin names answer a call on the twin, if it is one that it may be
// asked to: see internal/line. It returns the reply as the general one is, nil for none.
func (w *world) runThin(t require.TestingT, script string, args []string) []any {
	linger, node, claim := args[0], args[3], args[4]
	own := strings.HasPrefix(claim, node+".")
	run := func(script string, args ...string) []any {
		reply := said(t, w.do(t, append([]string{"EVAL", w.whole.Script(script).Source(), "1", w.twin[0]}, args...)...))
		if reply[0] == "fat" {
			require.Len(t, reply, 1)
			return nil
		}
		return reply
	}
	switch {
	case strings.HasSuffix(script, "_acquire") && own && strings.Count(claim, ".") == strings.Count(node, ".")+1:
		r, err := state.ParseRecord("w 0 0 0 n " + args[7])
		require.NoError(t, err)
		stays, err := time.ParseDuration(linger + "ms")
		require.NoError(t, err)
		if r.Weight != 1 || w.kind == "semaphore" && args[8] != "1000000000000001" || r.Lease > min(r.Wait, stays) || len(args[7]) > 512 {
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
		before, expires := fmt.Sprint(w.do(t, "MGET", w.twin[0]).([]any)[0]), w.do(t, "PEXPIRETIME", w.twin[0])
		if run("thin_release", claim) == nil {
			return nil
		}
		require.Equal(t, expires, w.do(t, "PEXPIRETIME", w.twin[0])) // later than it need be, where the hold had not ended
		w.do(t, "PEXPIRE", w.twin[0], linger)
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
	if end := w.value(t, "pause"); end > time.Now().UnixMilli() {
		next = end // nothing comes free before
	}
	mine := int64(0)
	if strings.HasPrefix(first, node+".") {
		mine = 1
	}
	return []any{int64(slices.Index(waiting, place+"-"+claim)), max(next-time.Now().UnixMilli(), 0), mine}
}
