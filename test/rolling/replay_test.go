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
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/scripts/composed"
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

func (r *tape) add(commands ...rueidis.Completed) {
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
		case "DEL", "HDEL", "HSET", "ZREM", "ZADD", "SET":
			call.keys, call.args = words[1:2], words
		default:
			continue
		}
		r.calls = append(r.calls, call)
	}
}

func (r *recorder) Do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	r.tape.add(command)
	return r.Client.Do(ctx, command)
}

func (r *recorder) DoMulti(ctx context.Context, commands ...rueidis.Completed) []rueidis.RedisResult {
	r.tape.add(commands...)
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
}

// play runs a tape, and returns what each call was answered and did, and now and then what the keys hold. It notes in ran
// the scripts that were answered by something else than an error.
func (p *player) play(t testing.TB, calls []sentCall, ran map[string]bool) (steps []string) {
	t.Helper()
	ctx, keys := context.Background(), map[string]bool{}
	for _, call := range calls {
		for _, key := range append(slices.Clone(call.keys), call.keys[0]+"!ends") {
			keys[key] = true
		}
	}
	forget := func() {
		for key := range keys {
			require.NoError(t, p.redis.Do(ctx, p.redis.B().Del().Key(key).Build()).Error())
		}
	}
	forget()
	defer forget()
	for i, call := range calls {
		text := "return redis.call(unpack(ARGV))"
		if call.script != "" {
			text = p.library.Script(call.script).Source()
		}
		args := append(slices.Clone(call.args), strconv.FormatInt(call.at.Unix(), 10), strconv.Itoa(call.at.Nanosecond()/1000))
		reply := p.redis.Do(ctx, p.redis.B().Eval().Script(strings.Replace(replay, "-- The script stands here.", text, 1)).Numkeys(int64(len(call.keys))).Key(call.keys...).Arg(args...).Build())
		told, err := reply.ToAny()
		if parts, ok := told.([]any); ok && len(parts) == 2 && !strings.HasPrefix(fmt.Sprint(parts[1]), "[error") {
			ran[call.script] = true
		}
		steps = append(steps, fmt.Sprint(call.script, call.keys, args, told, err))
		if i%50 == 49 || i == len(calls)-1 {
			steps = append(steps, p.dump(t, slices.Sorted(maps.Keys(keys))))
		}
	}
	return steps
}

// dump is what keys hold.
func (p *player) dump(t testing.TB, keys []string) string {
	t.Helper()
	ctx, held := context.Background(), strings.Builder{}
	for _, key := range keys {
		kind, err := p.redis.Do(ctx, p.redis.B().Type().Key(key).Build()).ToString()
		require.NoError(t, err)
		var value any
		switch kind {
		case "hash":
			value, err = p.redis.Do(ctx, p.redis.B().Hgetall().Key(key).Build()).AsStrMap()
		case "zset":
			value, err = p.redis.Do(ctx, p.redis.B().Zrange().Key(key).Min("0").Max("-1").Withscores().Build()).AsZScores()
		case "string":
			value, err = p.redis.Do(ctx, p.redis.B().Get().Key(key).Build()).ToString()
		default:
			value = kind
		}
		require.NoError(t, err)
		fmt.Fprintln(&held, key, value)
	}
	return held.String()
}

// The scripts do on a real server what they do on the embedded one, where most tests run them: what they answer, each
// command that they call, and what they leave.
func TestTheEmbeddedServerDoesWhatARealOneDoes(t *testing.T) {
	t.Parallel()
	server, err := embedded.Start()
	require.NoError(t, err)
	t.Cleanup(server.Close)
	redis, err := server.Client()
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	players := []*player{
		{redis, composed.Library()},
		{listed(t), composed.Library()},
	}
	tapes := map[string][]sentCall{"each script": eachScript(t, players[1].redis)}
	for primitive, those := range plays {
		for about, play := range those {
			taken := &tape{}
			require.Empty(t, perform(t, nil, nil, play, taken))
			tapes[primitive+"/"+about] = taken.calls
		}
	}
	ran := map[string]bool{}
	for name, calls := range tapes {
		want := players[0].play(t, calls, ran)
		for i, got := range players[1].play(t, calls, ran) {
			require.Equal(t, want[i], got, "%s, step %d", name, i)
		}
	}
	for _, script := range composed.Library().Scripts() {
		require.True(t, ran[script.Name], "%s was answered by something else than an error", script.Name)
	}
}

// eachScript has each script called as the tests of a newer format do.
func eachScript(t *testing.T, redis rueidis.Client) []sentCall {
	t.Helper()
	taken := &tape{}
	records := &recorder{redis, taken}
	for _, script := range today.scripts {
		prefix, _, _ := strings.Cut(script.Name, "_")
		for _, kind := range kindsOf[prefix] {
			if prefix != "thin" {
				refuses(newSite(t, today, records, kind), script)
			}
			if kind == keyspace.Sem || kind == keyspace.Lock {
				refusesThin(newSite(t, today, records, kind), script, prefix == "thin")
			}
		}
	}
	for _, args := range [][]string{
		{"60000", "why", "a.1", "pause:lock", "0", "pause:sem", "0"},
		{"0", "drain", "a.2", "n:b", "0"},
		{"60000", "why", "a.1", "pause:lock", "0", "pause:sem", "0"},
		{"0", "", "a.3", "pause:lock", "1"},
		{"0", "", "a.4", "pause:lock", "9000000000000"},
	} {
		taken.calls = append(taken.calls, sentCall{at: time.Now(), script: "notice_set", keys: []string{"{n}:notice"}, args: args})
	}
	return taken.calls
}
