package fence_test

import (
	"strconv"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/berthtest"
	"github.com/berth-go/berth/pkg/fence"
)

// pay adds to a balance under a fence, and answers what admit says.
func pay(t *testing.T, redis rueidis.Client, key, number string) (bool, string) {
	t.Helper()
	script := rueidis.NewLuaScript(fence.Lua() + `
		local ok, greatest = admit(KEYS[1], ARGV[1])
		if ok then
			redis.call("HINCRBY", KEYS[1], "balance", 10)
		end
		return { ok and 1 or 0, greatest }`)
	reply := must(script.Exec(t.Context(), redis, []string{key}, []string{number}).ToArray())(t)
	return must(reply[0].ToInt64())(t) == 1, must(reply[1].ToString())(t)
}

func TestAScriptOfOnesOwnChecksAndWrites(t *testing.T) {
	t.Parallel()
	redis := berthtest.Redis(t)
	const account, exact = "account:{7}", "9007199254740994" // 2^53 + 2
	balance := int64(0)
	for _, step := range []struct {
		fence    string
		ok       bool
		greatest string
	}{
		{"5", true, "0"},
		{"5", true, "5"},
		{"4", false, "5"},
		{"10", true, "5"},
		{"9", false, "10"},
		{"9007199254740993", true, "10"},
		{"9007199254740992", false, "9007199254740993"},
		{exact, true, "9007199254740993"},
		{"0", false, exact},
		{"", false, exact},
		{"-1", false, exact},
		{"9.1e+15", false, exact},
		{" 9007199254740995", false, exact},
		{"09007199254740995", false, exact},
	} {
		ok, greatest := pay(t, redis, account, step.fence)
		require.Equal(t, step.ok, ok, step.fence)
		require.Equal(t, step.greatest, greatest, step.fence)
		if ok {
			balance += 10
		}
		require.Equal(t, balance, number(t, redis, "HGET", account, "balance"))
	}
}

// What is paid for by a script and what is admitted by a call is one line.
func TestAScriptMayShareTheKeyOfAGuard(t *testing.T) {
	t.Parallel()
	redis := berthtest.Redis(t)
	g := newRedis(t, redis)
	key := must(g.Key(invoice))(t)

	require.NoError(t, g.Admit(t.Context(), invoice, micros))
	ok, greatest := pay(t, redis, key, strconv.Itoa(micros-1))
	require.False(t, ok)
	require.Equal(t, strconv.Itoa(micros), greatest)
	ok, _ = pay(t, redis, key, strconv.Itoa(micros+1))
	require.True(t, ok)
	requireStale(t, g.Admit(t.Context(), invoice, micros), invoice, micros, micros+1)

	require.NoError(t, g.Forget(t.Context(), invoice, micros+1))
	require.Equal(t, int64(10), number(t, redis, "HGET", key, "balance"), "what else is in the hash stays")
}
