package rolling

import (
	"context"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/fence"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/once"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/pkg/semaphore"
	"github.com/berth-go/berth/scripts/composed"
	"github.com/berth-go/berth/test/harness"
)

// sentCall is a call of a script, or another command, as a client has sent it.
type sentCall struct {
	at         time.Time
	script     string // its name, "" for another command
	keys, args []string
}

// recorder is a client that records what writes: scripts, and what a play sends by itself.
type recorder struct {
	rueidis.Client
	tape *tape
	dead *atomic.Bool // then nothing reaches the server
}

// tape is what was sent to one server, in about that order.
type tape struct {
	mu    sync.Mutex
	calls []sentCall // guarded by mu
}

var names = sync.OnceValue(func() map[string]string {
	byText := map[string]string{}
	for _, s := range composed.Library().Scripts() {
		byText[s.SHA], byText[s.Source()] = s.Name, s.Name
	}
	return byText
})

func (r *tape) add(dead *atomic.Bool, commands ...rueidis.Completed) {
	if dead.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, command := range commands {
		words := slices.Clone(command.Commands())
		call := sentCall{at: time.Now()}
		switch words[0] {
		case "EVAL", "EVALSHA":
			count, _ := strconv.Atoi(words[2])
			call.script, call.keys, call.args = names()[words[1]], words[3:3+count], words[3+count:]
			if call.script == "" {
				panic("a script that is not Berth's: " + words[1])
			}
		case "DEL", "HSET":
			call.keys, call.args = words[1:2], words
		case "FLUSHALL":
		default:
			continue
		}
		r.calls = append(r.calls, call)
	}
}

func (r *recorder) Do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	r.tape.add(r.dead, command)
	return r.Client.Do(ctx, command)
}

func (r *recorder) DoMulti(ctx context.Context, commands ...rueidis.Completed) []rueidis.RedisResult {
	r.tape.add(r.dead, commands...)
	return r.Client.DoMulti(ctx, commands...)
}

// replay.lua has a script go by the clock of the tape, and tell each command that it calls. The script, or a command in
// the place of one, stands where it says so.
//
//go:embed replay.lua
var replay string

// player runs tapes on a server with the scripts of a library.
type player struct {
	redis   rueidis.Client
	library *scriptkit.Library
	reads   map[string]bool // scripts that only read
	ran     map[string]bool // scripts that were answered by something else than an error
	refused map[string]bool // scripts, by kind, that have refused a newer format and then written
}

// play runs a tape, and returns what each call was answered and did, and now and then what the keys hold. A script that
// has not yet refused a newer format meets one first.
func (p *player) play(t testing.TB, calls []sentCall) (steps []string) {
	t.Helper()
	touched := map[string]bool{}
	for _, call := range calls {
		for _, key := range call.keys {
			touched[key], touched[call.keys[0]+"!ends"] = true, true
		}
	}
	keys := slices.Sorted(maps.Keys(touched))
	forget := func() { p.do(t, append([]string{"DEL"}, keys...)...) }
	forget()
	defer forget()
	for i, call := range calls {
		if call.keys == nil { // FLUSHALL
			forget()
			continue
		}
		text, meets, before := "return redis.call(unpack(ARGV))", "", ""
		if call.script != "" {
			script := find(p.library, call.script)
			if script == nil {
				continue // of a later release
			}
			text = script.Source()
			meets = call.script + " " + strings.Split(call.keys[0], ":")[1]
			if p.refused[meets] || !strings.HasSuffix(call.keys[0], ":state") {
				meets = ""
			}
		}
		if meets != "" {
			steps = append(steps, p.meet(t, call, text, keys)...)
			before = dump(t, p.redis, keys)
		}
		reply, err := p.run(call, text)
		if err == nil && !strings.HasPrefix(fmt.Sprint(reply[1]), "[error") {
			p.ran[call.script] = true
		}
		steps = append(steps, fmt.Sprint(call, reply, err))
		if meets != "" && before != "" {
			p.refused[meets] = p.reads[call.script] == (before == dump(t, p.redis, keys))
		}
		if i%50 == 49 || i == len(calls)-1 {
			steps = append(steps, dump(t, p.redis, keys))
		}
	}
	return steps
}

// meet has a script meet newer formats: that of the name raised, and a thin name where there may be one. It answers which
// it met, and writes nothing; the scripts of thin names leave it to the general ones to say what it is.
func (p *player) meet(t testing.TB, call sentCall, text string, keys []string) (steps []string) {
	t.Helper()
	if script := find(p.library, call.script); script.Several { // the others would be written
		call.keys, call.args = call.keys[:len(script.Keys)], call.args[:len(script.Args)+1]
	}
	_, err := p.run(call, "return {}") // what has expired goes
	require.NoError(t, err)
	key, was := call.keys[0], call.keys[0]+"!was"
	forms := [][]string{newer(p.redis, key)}
	if kind := strings.Split(key, ":")[1]; forms[0] != nil && (kind == "sem" || kind == "lock") {
		idle := fmt.Sprintf("f%d 1700000000000000", newerFormat)
		held := idle + " 1700000000000 b.9 " + state.FixedTerms(&engine.Record{Weight: 1, Owner: "o"})
		forms = append(forms, []string{"SET", key, held}, []string{"SET", key, idle})
	}
	for _, form := range forms {
		if form == nil {
			continue
		}
		p.do(t, "COPY", key, was)
		p.do(t, form...)
		before := dump(t, p.redis, keys)
		reply, err := p.run(call, text)
		require.NoError(t, err)
		steps = append(steps, fmt.Sprint(call, reply))
		want := fmt.Sprintf("[incompatible %d]", newerFormat)
		switch {
		case find(p.library, call.script).Several:
			want = "[held 0 0]"
		case strings.HasPrefix(call.script, "thin"):
			want = "[fat]"
		case strings.HasPrefix(call.script, "fence"):
			want = "[incompatible]"
		}
		require.Equal(t, want, fmt.Sprint(reply[1]), "%s meets %s", call.script, form)
		require.Equal(t, before, dump(t, p.redis, keys), "%s has written on %s", call.script, form)
		p.do(t, "RENAME", was, key)
	}
	return steps
}

// run runs a script as the call had it, and returns the commands that it has called, and its reply.
func (p *player) run(call sentCall, text string) ([]any, error) {
	args := append(slices.Clone(call.args), strconv.FormatInt(call.at.Unix(), 10), strconv.Itoa(call.at.Nanosecond()/1000))
	text = strings.Replace(replay, "-- The script stands here.", text, 1)
	b := p.redis.B().Eval().Script(text).Numkeys(int64(len(call.keys)))
	told, err := p.redis.Do(bg, b.Key(call.keys...).Arg(args...).Build()).ToAny()
	if err != nil {
		return nil, err
	}
	return told.([]any), nil
}

// do runs a command.
func (p *player) do(t testing.TB, words ...string) {
	t.Helper()
	require.NoError(t, p.redis.Do(bg, p.redis.B().Arbitrary(words...).Build()).Error(), words)
}

// dump is what keys hold, and when they expire.
func dump(t require.TestingT, redis rueidis.Client, keys []string) string {
	held := strings.Builder{}
	for _, key := range keys {
		kind, err := redis.Do(bg, redis.B().Type().Key(key).Build()).ToString()
		require.NoError(t, err)
		var value any
		switch kind {
		case "hash":
			value, err = redis.Do(bg, redis.B().Hgetall().Key(key).Build()).AsStrMap()
		case "zset":
			value, err = redis.Do(bg, redis.B().Zrange().Key(key).Min("0").Max("-1").Withscores().Build()).AsZScores()
		case "string":
			value, err = redis.Do(bg, redis.B().Get().Key(key).Build()).ToString()
		default:
			value = kind
		}
		require.NoError(t, err)
		ends, err := redis.Do(bg, redis.B().Pexpiretime().Key(key).Build()).AsInt64()
		require.NoError(t, err)
		fmt.Fprintln(&held, key, value, ends)
	}
	return held.String()
}

// tapes are of plays in which every script is called.
func tapes(t *testing.T) map[string][]sentCall {
	t.Helper()
	all := map[string][]sentCall{}
	whole := maps.Clone(plays)
	whole["seldom"] = seldom
	for about, play := range whole {
		taken := &tape{}
		require.Empty(t, perform(t, nil, nil, play, taken))
		all[about] = taken.calls
	}
	return all
}

// seldom calls the scripts that no other play calls.
func seldom(w *world, a, b *process) {
	guard, err := fence.NewRedis(w.redis, fence.RedisConfig{})
	w.ok(err)
	w.ok(guard.Admit(bg, name, 7))
	w.ok(guard.Admit(bg, name, 9))
	w.ok(guard.Forget(bg, name, 9))
	job := once.New(a.Node, name, once.Config{Every: time.Minute})
	for range 2 {
		_, err = job.Do(bg, func(context.Context, *once.Run) error { return nil })
		w.ok(err)
		w.pass(time.Minute)
	}
	thin := semaphore.New(a.Node, "thin", 1, semaphore.Config{})
	for range 2 {
		permit, lock := take(w)(thin.TryAcquire(bg, nil)), take(w)(a.locks.TryLock(bg, "thin", nil))
		w.pass(lease)
		giveBack(w, permit, lock)
	}
	for range 2 { // the second time they are plain from the start, and so have their heartbeats together
		one := take(w)(semaphore.New(a.Node, "one of two", 2, semaphore.Config{}).TryAcquire(bg, nil))
		other := take(w)(semaphore.New(a.Node, "other of two", 2, semaphore.Config{}).TryAcquire(bg, nil))
		w.pass(lease)
		giveBack(w, one, other)
	}
	a.fill("r1")
	for _, f := range []faced{sems, locks, pools} {
		hold, line := f.take(a), f.queue(b)
		w.ok(of(b.Operator().Want(bg, berth.Target{Kind: f.kind, Name: name, Claim: hold.ID()})))
		w.ok(a.Operator().Pause(bg, f.kind, name, time.Minute, "a says so"))
		giveBack(w, hold)
		line.waits()
		w.ok(a.Operator().Unpause(bg, f.kind, name))
		giveBack(w, line.granted(hold.Fence()))
	}
	locks.take(a)
	w.ok(qlock.NewOperator(b.Node).Extend(bg, name, second))
	w.ok(of(b.Operator().Release(bg, berth.Target{Kind: keyspace.Lock, Name: name})))
	w.ok(of(a.Operator().PauseAll(bg, time.Minute, "all")))
	w.ok(of(a.Operator().UnpauseAll(bg)))

	w.ok(a.Swarm().Start(bg))
	w.ok(b.Swarm().Start(bg))
	forever := take(w)(a.locks.TryLock(bg, name, &qlock.LockOptions{Lease: berth.Forever}))
	again := w.queue(func(ctx context.Context) (handle, error) {
		return b.locks.Lock(ctx, name, &qlock.LockOptions{RequeueEvery: second})
	})
	w.pass(20 * second)
	a.die()
	w.do("DEL", "berth:swarm:{nodes}:probes")
	w.do("DEL", "berth:swarm:{nodes}:state")
	w.pass(time.Minute)
	w.ok(of(b.Swarm().FlushNow(bg)))
	w.pass(time.Minute)
	w.ok(of(b.Swarm().FlushNow(bg)))
	giveBack(w, again.granted(forever.Fence()))
	w.ok(b.Swarm().Stop(bg))

	w.do("HSET", "berth:pool:{"+name+"}:items", "ir1", "damaged")
	b.fill("r1")
	w.ok(b.pools.Set(bg, name, "", allocator.Settings{MaxSharers: 2}))
	all(w, b.pool.FreeInOrder(bg))
	w.ok(of(b.pools.Inspect(bg, name)))
	source := allocator.New(b.Node, "filled", allocator.Config[string]{
		Source: func(context.Context) ([]string, error) { return []string{"r1", "r2"}, nil }, Shared: true,
	})
	w.ok(of(source.Refresh(bg)))
	own, err := source.TryAllocate(bg, nil)
	w.ok(err)
	w.ok(own.ExpireIn(time.Minute))
	giveBack(w, own)
	w.ok(source.Close(bg))
}

func newPlayer(redis rueidis.Client, r release) *player {
	p := &player{redis, r.library, map[string]bool{}, map[string]bool{}, map[string]bool{}}
	for _, script := range r.scripts {
		p.reads[script.Name] = strings.HasPrefix(script.Declares.Replay, "reads only")
	}
	return p
}

// embeddedClient is a client of a server of its own.
func embeddedClient(t *testing.T) rueidis.Client {
	t.Helper()
	server, err := embedded.Start()
	require.NoError(t, err)
	t.Cleanup(server.Close)
	redis, err := server.Client()
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	return redis
}

// The scripts do on a real server what they do on the embedded one, where most tests run them: what they answer, each
// command that they call, and what they leave, also where they meet a newer format. A hash of the real one is a list: one
// that is a table may change its order by being read.
func TestTheEmbeddedServerDoesWhatARealOneDoes(t *testing.T) {
	t.Parallel()
	listed := harness.Start(t, "--hash-max-listpack-value", "65536", "--zset-max-listpack-value", "65536").Client(t)
	players := []*player{newPlayer(embeddedClient(t), today), newPlayer(listed, today)}
	for about, calls := range tapes(t) {
		want := players[0].play(t, calls)
		for i, got := range players[1].play(t, calls) {
			require.Equal(t, want[i], got, "%s, step %d", about, i)
		}
	}
	for _, script := range today.library.Scripts() {
		require.True(t, players[0].ran[script.Name], "%s was answered by something else than an error", script.Name)
	}
}

// A release that meets the data of a newer one answers so and writes nothing: each of its scripts, on a name on which the
// same call does write while the format is its own. Those of older releases were tested like that when they were today's,
// and have not changed since.
func TestANewerFormatIsRefusedWithoutAWrite(t *testing.T) {
	t.Parallel()
	for _, r := range []release{previous(t), today} {
		p := newPlayer(embeddedClient(t), r)
		for _, calls := range tapes(t) {
			p.play(t, calls)
		}
		for _, script := range r.scripts {
			if script.Name == "waits_note" || script.Name == "notice_set" {
				continue // no number: the registry is a hint, and of a notice each reader heeds the fields that it knows
			}
			if find(today.library, script.Name) == nil {
				continue // nobody calls it any more
			}
			prefix, _, _ := strings.Cut(script.Name, "_")
			kinds := map[string][]string{"semaphore": {"sem"}, "thin": {"sem", "lock"}, "fat": {"sem"}}[prefix]
			if kinds == nil {
				kinds = []string{prefix}
			}
			for _, kind := range kinds {
				require.True(t, p.refused[script.Name+" "+kind], "%s of %s has met a newer format, and then written", script.Name, r.version)
			}
		}
	}
}
