package embedded

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// ms is an instant as the scripts write it.
func ms(at time.Time) string { return strconv.FormatInt(at.UnixMilli(), 10) }

// What Berth's scripts ask of a server, and their own tests would not show at once. The expected answers are those of
// Redis 7.
var scriptCases = []struct {
	name, script string
	want         any
}{
	{
		"free bytes in a hash",
		`local bytes = "\0\255\r\n\128"
		redis.call("HSET", KEYS[1], bytes, bytes)
		return { redis.call("HGET", KEYS[1], bytes), redis.call("HKEYS", KEYS[1])[1] == bytes and 1 or 0 }`,
		[]any{"\x00\xff\r\n\x80", int64(1)},
	},
	{
		"HSCAN with a pattern",
		`redis.call("HSET", KEYS[1], "c:1", "x", "used", "2")
		local page = redis.call("HSCAN", KEYS[1], "0", "MATCH", "c:*", "COUNT", "100")
		return { page[1], page[2] }`,
		[]any{"0", []any{"c:1", "x"}},
	},
	{
		"scores up to 2^53 come back whole",
		`local k, scores = KEYS[1], { 17592186044416, 4503599627370495, 4503599627370496, 9007199254740991 }
		for i, score in ipairs(scores) do
			redis.call("ZADD", k, string.format("%.0f", score), "m" .. i)
		end
		local more = redis.call("ZMSCORE", k, "m2", "none", "m4")
		return { redis.call("ZSCORE", k, "m1"), more[1], more[2] == false and 1 or 0, more[3],
			redis.call("ZRANGE", k, 0, -1, "WITHSCORES") }`,
		[]any{"17592186044416", "4503599627370495", int64(1), "9007199254740991", []any{
			"m1", "17592186044416", "m2", "4503599627370495", "m3", "4503599627370496", "m4", "9007199254740991",
		}},
	},
	{
		"neighbours at 2^52 are told apart",
		`local k = KEYS[1]
		redis.call("ZADD", k, "4503599627370496", "b", "4503599627370497", "a", "4503599627370495", "c")
		return { redis.call("ZRANGE", k, 0, -1), redis.call("ZCOUNT", k, "4503599627370496", "4503599627370496"),
			redis.call("ZCOUNT", k, "(4503599627370496", "+inf") }`,
		[]any{[]any{"c", "b", "a"}, int64(1), int64(1)},
	},
	{
		"ZRANGEBYSCORE and ZREVRANGEBYSCORE with LIMIT",
		`local k = KEYS[1]
		redis.call("ZADD", k, 1, "a", 2, "b", 3, "c", 3, "d", 4, "e")
		return { redis.call("ZRANGEBYSCORE", k, 2, 4, "WITHSCORES", "LIMIT", 0, 2),
			redis.call("ZRANGEBYSCORE", k, "(2", "+inf", "LIMIT", 1, 2),
			redis.call("ZREVRANGEBYSCORE", k, 3, "-inf", "WITHSCORES", "LIMIT", 0, 1),
			redis.call("ZRANGEBYSCORE", k, 10, 20) }`,
		[]any{[]any{"b", "2", "c", "3"}, []any{"d", "e"}, []any{"d", "3"}, []any{}},
	},
	{
		"an emptied key forgets its expiry",
		`local k = KEYS[1]
		redis.call("ZADD", k, 1, "a")
		redis.call("PEXPIRE", k, 1000)
		redis.call("ZREM", k, "a")
		redis.call("ZADD", k, 1, "a")
		return { redis.call("PTTL", k), redis.call("PEXPIRE", k, 1000, "GT"), redis.call("PTTL", k) }`,
		[]any{int64(-1), int64(0), int64(-1)},
	},
	{
		"writing keeps an expiry, PERSIST takes it away",
		`local k = KEYS[1]
		redis.call("HSET", k, "f", 1)
		redis.call("PEXPIREAT", k, "4102444800123")
		redis.call("HSET", k, "g", 2)
		local at = redis.call("PEXPIRETIME", k)
		return { at, redis.call("PERSIST", k), redis.call("PERSIST", k), redis.call("PEXPIRETIME", k),
			redis.call("PEXPIRETIME", "{k}none"), redis.call("PEXPIREAT", "{k}none", "4102444800123") }`,
		[]any{int64(4102444800123), int64(1), int64(0), int64(-1), int64(-2), int64(0)},
	},
	{
		"an expiry in the past ends the key",
		`redis.call("HSET", KEYS[1], "f", 1)
		return { redis.call("PEXPIREAT", KEYS[1], "1"), redis.call("EXISTS", KEYS[1]) }`,
		[]any{int64(1), int64(0)},
	},
	{
		"PUBLISH to nobody",
		`return { redis.call("PUBLISH", "channel", "message"), redis.pcall("PUBLISH", "channel", "message") }`,
		[]any{int64(0), int64(0)},
	},
	{
		"pcall gives a table with err",
		`redis.call("HSET", KEYS[1], "f", 1)
		local failed = redis.pcall("ZADD", KEYS[1], 1, "a")
		return { type(failed), failed.err ~= nil and 1 or 0, string.sub(failed.err, 1, 9), redis.call("HLEN", KEYS[1]) }`,
		[]any{"table", int64(1), "WRONGTYPE", int64(1)},
	},
	{
		"numbers are cut and false becomes nil in a reply",
		`return { 3.99, -3.99, 9007199254740991, false, true, "text" }`,
		[]any{int64(3), int64(-3), int64(9007199254740991), nil, int64(1), "text"},
	},
}

func TestScripts(t *testing.T) {
	t.Parallel()
	for _, c := range scriptCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, client rueidis.Client) {
				got, err := eval(client, c.script, []string{"{k}"})
				require.NoError(t, err)
				require.Equal(t, c.want, got)
			})
		})
	}
}

func TestScriptErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ script, want string }{
		"an error table":         {`return { err = "MINE of the script" }`, "MINE of the script"},
		"redis.error_reply":      {`return redis.error_reply("MINE of the script")`, "MINE of the script"},
		"a wrong type":           {`return redis.call("ZADD", KEYS[1], 1, "a")`, "WRONGTYPE"},
		"what is no number":      {`return redis.call("HINCRBY", KEYS[1], "text", 1)`, "is not an integer"},
		"an unknown command":     {`return redis.call("NOSUCH", KEYS[1])`, "nknown Redis command"},
		"an unknown global":      {`return undeclared`, "undeclared"},
		"a new global":           {`leaked = 1`, "leaked"},
		"an error of its own":    {`error("mine")`, "mine"},
		"a call with a nil":      {`return redis.call("HGET", KEYS[1], nil)`, "must be strings or integers"},
		"what the server lacks":  {`return cmsgpack.pack(1)`, "cmsgpack"},
		"what is not the syntax": {`return (`, "compiling"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, client rueidis.Client) {
				_, err := eval(client, `redis.call("HSET", KEYS[1], "text", "x")`, []string{"k"})
				require.ErrorIs(t, err, rueidis.Nil)
				_, err = eval(client, c.script, []string{"k"})
				var answered *rueidis.RedisError
				require.ErrorAs(t, err, &answered)
				require.ErrorContains(t, err, c.want)
			})
		})
	}
}

// A failing call ends the script there and keeps what was written before.
func TestScriptStopsAtAFailingCall(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, client rueidis.Client) {
		_, err := eval(client, `redis.call("HSET", KEYS[1], "before", 1)
			redis.call("ZADD", KEYS[1], 1, "a")
			redis.call("HSET", KEYS[1], "after", 1)`, []string{"k"})
		require.ErrorContains(t, err, "WRONGTYPE")
		fields, err := client.Do(context.Background(), client.B().Hkeys().Key("k").Build()).AsStrSlice()
		require.NoError(t, err)
		require.Equal(t, []string{"before"}, fields)
	})
}

func TestScriptPublishes(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, client rueidis.Client) {
		ctx, cancel := context.WithCancel(context.Background())
		s := subscribe(ctx, client, "wake")
		bytes := "5:a\x00\r\nb3:\xff\xfe\xfd"
		reached, err := eval(client, `return redis.pcall("PUBLISH", ARGV[1], ARGV[2])`, nil, "wake", bytes)
		require.NoError(t, err)
		require.EqualValues(t, 1, reached)
		require.Equal(t, bytes, next(t, s))
		cancel()
		require.ErrorIs(t, <-s.ended, context.Canceled)
	})
}

// TIME is the bubble's: whole microseconds, and the same throughout a script.
func TestScriptTime(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, client rueidis.Client) {
		for _, step := range []time.Duration{0, time.Microsecond, 999 * time.Microsecond, time.Hour} {
			time.Sleep(step)
			now := time.Now()
			got, err := eval(client, `local a = redis.call("TIME")
				for i = 1, 100 do redis.call("INCR", KEYS[1]) end
				local b = redis.call("TIME")
				return { a[1], a[2], a[1] == b[1] and a[2] == b[2] and 1 or 0 }`, []string{"k"})
			require.NoError(t, err)
			require.Equal(t, []any{
				strconv.FormatInt(now.Unix(), 10), strconv.Itoa(now.Nanosecond() / 1000), int64(1),
			}, got)
		}
	})
}

func TestScriptFlushMeansNoScript(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, client rueidis.Client) {
		ctx := context.Background()
		sha, err := client.Do(ctx, client.B().ScriptLoad().Script("return 1").Build()).ToString()
		require.NoError(t, err)
		run := client.B().Evalsha().Sha1(sha).Numkeys(0).Build().Pin()
		require.NoError(t, client.Do(ctx, run).Error())
		require.NoError(t, client.Do(ctx, client.B().ScriptFlush().Build()).Error())
		err = client.Do(ctx, run).Error()
		require.Error(t, err)
		require.True(t, strings.HasPrefix(err.Error(), "NOSCRIPT"), err)
	})
}
