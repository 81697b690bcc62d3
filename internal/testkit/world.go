// Package testkit is what tests stand on. A World is where one takes place: an in-process
// server in the virtual time of testing/synctest, and a look at what it keeps of one name. A
// Process is what a process in it stands on, over a [link.Link] that a test can break; a Wait is
// an acquire of it on its way. A Patient is a test on a real server, in real time.
//
// Packages embed World or Patient in a type world of their own, which adds their nodes.
package testkit

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/internal/testkit/backup"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

const (
	// Lease is a wait lease for nodes: its third, half and hundredth are whole
	// milliseconds.
	Lease = 6 * time.Second
	// Margin is what a holder gives up of it: 2 ms and 1 %.
	Margin = 62 * time.Millisecond
)

// World is a server in virtual time.
type World struct {
	T      *testing.T
	Server *embedded.Server
	Redis  rueidis.Client // looks on
	// Name is what is contended for; State and Line are its keys, which the methods look at.
	Name        string
	State, Line string
	// Others are its other keys, for those that have some.
	Others []string

	// Began is when the test began.
	Began time.Time

	run *scriptkit.Runner
}

// In runs a test in virtual time, beside others. What the test leaves running fails
// it.
func In(t *testing.T, name, state, line string, test func(t *testing.T, w *World)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))) //nolint:forbidigo // virtual; times have as many digits as of now
		server, err := embedded.Start()
		require.NoError(t, err)
		defer server.Close()
		redis, err := server.Client(link.RarePings, link.Slim)
		require.NoError(t, err)
		defer redis.Close()
		w := &World{T: t, Server: server, Redis: redis, Name: name, State: state, Line: line, Began: time.Now()}
		w.run = scriptkit.NewRunner(redis, scriptkit.Options{})
		test(t, w)
	})
}

// Now is how long the test has run.
func (w *World) Now() time.Duration { return time.Since(w.Began) }

// Advance lets time pass, and everything that happens then.
func (w *World) Advance(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // the time of a bubble, where a sleep is the signal
	synctest.Wait()
}

// Until lets the time pass up to a moment of the test.
func (w *World) Until(at time.Duration) {
	w.T.Helper()
	require.LessOrEqual(w.T, w.Now(), at, "that moment has passed")
	w.Advance(at - w.Now())
}

// Acquires sends an acquire of the World's name as a node would that it has none of; see line.Args.
func (w *World) Acquires(kind, node, claim string, r *state.Record, waits, policy string, own ...string) scriptkit.Reply {
	w.T.Helper()
	return w.Call(kind+"_acquire", says(node, w.Name).Acquire(claim, r, waits, policy, own...)...)
}

// Releases sends a release likewise: it says less of the claim than its node would, so that it is no plain one, and a
// tombstone stays for so long (ms).
func (w *World) Releases(kind, node, claim string, stays int64, own ...string) scriptkit.Reply {
	w.T.Helper()
	return w.Call(kind+"_release", says(node, w.Name).Release(claim, &state.Record{Lease: berth.Forever}, stays, own...)...)
}

func says(node, name string) *line.Args {
	return &line.Args{Node: node, Channel: "berth:wake:", Name: name, Linger: time.Minute.Milliseconds()}
}

// Call runs a script as a process would that a test has no node for.
func (w *World) Call(script string, args ...string) scriptkit.Reply {
	w.T.Helper()
	return w.CallOn(append([]string{w.State, w.Line}, w.Others...), script, args...)
}

// CallOn is Call on other keys than those of the name.
func (w *World) CallOn(keys []string, script string, args ...string) scriptkit.Reply {
	w.T.Helper()
	r, err := w.run.Run(context.Background(), library().Script(script), scriptkit.Once, keys, args)
	require.NoError(w.T, err)
	return r
}

// reader reads the namespace; kind is that of the name.
func (w *World) reader() (read *reader.Reader, kind keyspace.Kind) {
	w.T.Helper()
	front, _, _ := strings.Cut(w.State, ":{")
	namespace, of, _ := strings.Cut(front, ":")
	space, err := keyspace.New(namespace)
	require.NoError(w.T, err)
	return reader.New(w.run, space, true), keyspace.Kind(of)
}

// Look reads the name.
func (w *World) Look() (reader.Row, error) {
	w.T.Helper()
	read, kind := w.reader()
	return read.Name(context.Background(), kind, w.Name)
}

// Holders are the holds of the name.
func (w *World) Holders() []berth.Holder {
	w.T.Helper()
	read, kind := w.reader()
	return Collect(w.T, read.Holders(context.Background(), kind, w.Name))
}

// Waiters are the claims that wait for the name, in the order of the line.
func (w *World) Waiters() []berth.Waiter {
	w.T.Helper()
	read, kind := w.reader()
	return Collect(w.T, read.Waiters(context.Background(), kind, w.Name))
}

// Do runs a command on the server, and returns its answer.
func (w *World) Do(words ...string) rueidis.RedisResult {
	w.T.Helper()
	r := w.Redis.Do(context.Background(), w.Redis.B().Arbitrary(words...).Build())
	if err := r.Error(); !rueidis.IsRedisNil(err) {
		require.NoError(w.T, err)
	}
	return r
}

// Int runs a command that answers a number.
func (w *World) Int(words ...string) int64 {
	w.T.Helper()
	n, err := w.Do(words...).AsInt64()
	require.NoError(w.T, err)
	return n
}

// Keys are all keys on the server, sorted, but for those of the registry of names that wait.
func (w *World) Keys() []string {
	w.T.Helper()
	keys, err := w.Do("KEYS", "*").AsStrSlice()
	require.NoError(w.T, err)
	slices.Sort(keys)
	return slices.DeleteFunc(keys, func(key string) bool { return strings.Contains(key, ":waits:{") })
}

// Dump is all that the server has of the name, for comparing.
func (w *World) Dump() string {
	w.T.Helper()
	line, err := w.Do("ZRANGE", w.Line, "0", "-1", "WITHSCORES").AsZScores()
	require.NoError(w.T, err)
	text, _ := w.text()
	all := []any{text, w.fat(), line}
	for _, key := range w.Others {
		kind, err := w.Do("TYPE", key).ToString()
		require.NoError(w.T, err)
		if kind == "zset" {
			members, err := w.Do("ZRANGE", key, "0", "-1", "WITHSCORES").AsZScores()
			require.NoError(w.T, err)
			all = append(all, members)
			continue
		}
		fields, err := w.Do("HGETALL", key).AsStrMap()
		require.NoError(w.T, err)
		all = append(all, fields)
	}
	return fmt.Sprint(all...)
}

// Snapshot keeps what the server has, and returns what puts it back: so a failover leaves
// it whose replica had fallen behind, or a restart from an older copy.
func (w *World) Snapshot() (restore func()) {
	w.T.Helper()
	taken, err := backup.Take(context.Background(), w.Redis)
	require.NoError(w.T, err)
	return func() {
		w.T.Helper()
		require.NoError(w.T, taken.Restore(context.Background(), w.Redis))
	}
}

// Publish wakes a node up as scripts/wake/wake.lua does.
func (w *World) Publish(node string, fields ...string) {
	w.T.Helper()
	payload := ""
	for _, field := range fields {
		payload += strconv.Itoa(len(field)) + ":" + field
	}
	w.Do("PUBLISH", "berth:wake:"+node, payload)
	synctest.Wait()
}

// Secret is what a push of a claim's grant proves itself by, as the server keeps it.
func (w *World) Secret(claim string) string {
	w.T.Helper()
	words := strings.Fields(w.Record(claim))
	if words[0] == "w" {
		return words[5]
	}
	return words[6]
}

// Expiry is when the keys of the name expire, as a moment of the test. It fails if
// that is not the same instant for all that exist.
func (w *World) Expiry() time.Duration {
	w.T.Helper()
	at := w.Int("PEXPIRETIME", w.State)
	for _, key := range append([]string{w.Line}, w.Others...) {
		if other := w.Int("PEXPIRETIME", key); other != -2 {
			require.Equal(w.T, at, other, "the keys expire at the same instant: %s", key)
		}
	}
	if at < 0 {
		return time.Duration(at)
	}
	return time.UnixMilli(at).Sub(w.Began)
}

// Field is a number of the name, 0 where it is not there.
func (w *World) Field(name string) int64 {
	w.T.Helper()
	return w.Values()[name]
}

// LeftOf is what the server says is left of a claim's hold; ok is false if it has
// none.
func (w *World) LeftOf(claim string) (left time.Duration, ok bool) {
	w.T.Helper()
	if thin, is := w.thin(); is {
		return time.Until(time.UnixMilli(thin.Ends)), thin.Claim == claim
	}
	score, err := w.Do("ZSCORE", w.Line, "h:"+claim).AsFloat64()
	if rueidis.IsRedisNil(err) {
		return 0, false
	}
	require.NoError(w.T, err)
	if score >= state.Width+state.Forever {
		return berth.Forever, true
	}
	return time.Until(time.UnixMilli(int64(score) - state.Width)), true
}

// RequireIdle fails unless nothing is held, nobody waits, and no record is left.
func (w *World) RequireIdle() {
	w.T.Helper()
	synctest.Wait()
	thin, is := w.thin()
	require.Empty(w.T, thin.Claim)
	members, err := w.Do("ZRANGE", w.Line, "0", "-1").AsStrSlice()
	require.NoError(w.T, err)
	fields := w.fat()
	if len(fields) > 0 {
		require.Equal(w.T, []string{"-"}, members, "the line is empty, but for what keeps it")
	} else {
		require.Empty(w.T, members, "there is no line; the name is thin: %t", is)
	}
	for name, value := range fields {
		require.False(w.T, strings.HasPrefix(name, "c:"), "a record is left: %s = %s", name, value)
	}
	for _, name := range []string{"used", "waiting", "gone", "forever"} {
		require.Zero(w.T, w.Field(name), name)
	}
}

// Notice has an operator say something to all processes: a field of the notice, for how long,
// and what. It returns the number.
func (w *World) Notice(field string, lasts time.Duration, what string) int64 {
	w.T.Helper()
	r := w.CallOn([]string{"berth:notice:{all}:state"}, "notice_set",
		strconv.FormatInt(lasts.Milliseconds(), 10), what, "call-"+strconv.FormatInt(time.Now().UnixNano(), 10), field, "9007199254740991")
	require.Equal(w.T, "set", r.Status())
	return r.Int(1)
}
