package app_test

import (
	"context"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	hidden "github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

// evil is what a hostile writer would like to have on a terminal.
const evil = "\x1b[2J\u009b2J\u202e"

// forged has a second hold stored beside the one of each name in use, by a claim
// of this id.
func forged(t *testing.T, redis rueidis.Client, kind, name, id string) {
	t.Helper()
	copying := `
		local line, copied = redis.call("ZRANGE", KEYS[2], 0, -1, "WITHSCORES"), 0
		for i = 1, #line, 2 do
			local claim = string.match(line[i], "^h:(.*)$")
			local record = claim and redis.call("HGET", KEYS[1], "c:" .. claim)
			if record then
				redis.call("HSET", KEYS[1], "c:" .. ARGV[1], record)
				redis.call("ZADD", KEYS[2], line[i + 1], "h:" .. ARGV[1])
				copied = copied + 1
			end
		end
		return copied`
	key := "berth:" + kind + ":{" + name + "}:"
	copied, err := redis.Do(context.Background(), redis.B().Eval().Script(copying).Numkeys(2).
		Key(key+"state", key+"line").Arg(id).Build()).AsInt64()
	require.NoError(t, err)
	require.EqualValues(t, 1, copied)
}

func TestWhatAHostileWriterStoredNeverReachesTheTerminal(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := apptest.Server(t)
	redis := apptest.Got(s.Client(apptest.Patiently))(t)
	t.Cleanup(redis.Close)
	const lease = time.Hour // nobody renews what is forged
	sem := semaphore.New(apptest.NodeOf(t, s, node.Config{Lease: lease}), "gpu", 4, semaphore.Config{})
	permit := apptest.Got(sem.Acquire(ctx, nil))(t)
	apptest.Got(apptest.LocksOf(t, s, node.Config{Lease: lease}).Lock(ctx, "gpu", nil))(t)
	pool := apptest.PoolOf(t, s, "gpu", node.Config{Lease: lease})
	apptest.Got(pool.Add(ctx, []string{"a", "key " + evil}, nil))(t)
	apptest.Got(pool.Allocate(ctx, nil))(t)
	for _, kind := range []string{"sem", "lock", "pool"} {
		forged(t, redis, kind, "gpu", evil)
	}
	// A name with one plain hold is one text.
	plain := apptest.Got(apptest.LocksOf(t, s, node.Config{}).Lock(ctx, "plain", nil))(t)
	text := apptest.Got(redis.Do(ctx, redis.B().Get().Key("berth:lock:{plain}:state").Build()).ToString())(t)
	require.Contains(t, text, plain.ID())
	text = strings.Replace(text, plain.ID(), evil+".1", 1)
	require.NoError(t, redis.Do(ctx, redis.B().Set().Key("berth:lock:{plain}:state").Value(text).Build()).Error())
	// What is kept of a run says when, by whom and what became of it.
	far := strings.Repeat("9", 18)
	run := strings.Join([]string{far, far, "1", far, far, far, far, "-3", evil, evil, "0:"}, " ") + "line\n" + evil + strings.Repeat("x", 400)
	keep := redis.B().Hset().Key("berth:once:{digest}:state").FieldValue().FieldValue("fmt", "1").FieldValue("run", run).Build()
	require.NoError(t, redis.Do(ctx, keep).Error())
	require.Contains(t, apptest.Call(t, s.URL(), "lock", "show", "digest").Out, `: "line\n\x1b[2J\u009b2J\u202e`+strings.Repeat("x", 400)+`"`)
	for _, line := range []string{
		"sem ls", "lock ls", "pool ls", "sem show gpu", "lock show gpu", "lock show plain", "lock show digest",
		"pool show gpu --all", "pool inspect gpu", "sem explain gpu", "lock explain gpu", "pool explain gpu", "cycles",
		"sem explain gpu " + evil, "sem release gpu " + evil + "2 --force", "lock show " + evil, "lock explain " + evil,
	} {
		args := strings.Fields(line)
		for _, more := range [][]string{nil, {"--json"}} {
			got := apptest.Call(t, s.URL(), append(args, more...)...)
			all := strings.ReplaceAll(got.Out+got.Err, "\n", "")
			require.Equal(t, -1, strings.IndexFunc(all, func(r rune) bool { return !unicode.IsPrint(r) || hidden.Hidden(r) }), "%v: %q", args, all)
		}
	}
	got := apptest.Call(t, s.URL(), "sem", "show", "gpu").Ends(t, 65)
	require.Contains(t, got.Out, permit.ID(), "what can be read is shown beside")
	require.Equal(t, `berth: claim "\x1b[2J\u009b2J\u202e" of "gpu" is damaged: its id is not one of Berth's`+"\n", got.Err)
	require.Regexp(t, `"problems": \[\n +"berth: claim .* of \\"gpu\\" is damaged`, apptest.Call(t, s.URL(), "sem", "show", "gpu", "--json").Ends(t, 65).Out)
	require.Equal(t, 65, apptest.Call(t, s.URL(), "lock", "show", "gpu").Code)
	require.Equal(t, 65, apptest.Call(t, s.URL(), "lock", "show", "plain").Code)
	require.Equal(t, 0, apptest.Call(t, s.URL(), "sem", "release", "gpu", evil, "--force").Code, "an operator can remove it")
	require.Equal(t, 0, apptest.Call(t, s.URL(), "sem", "show", "gpu").Code, "and all is well again")
	require.Equal(t, 0, apptest.Call(t, s.URL(), "pool", "release", "gpu", evil, "--force").Code, "of a pool, too")
	require.Equal(t, 1, apptest.Call(t, s.URL(), "pool", "release", "gpu", evil, "--force").Code)
}

func TestAListingThatFailsSaysNothingOfWhatThereIs(t *testing.T) {
	t.Parallel()
	denied := apptest.Refusing(t, "NOPERM this user has no permissions to run the 'scan' command")
	for _, line := range []string{
		"sem ls", "lock ls", "pool ls", "sem show x", "lock show x", "pool show x", "pool inspect x", "lock explain x", "node ls",
		"once ls", "once show x", "leader ls", "leader show x",
	} {
		args := strings.Fields(line)
		for _, more := range [][]string{nil, {"--json"}} {
			got := apptest.Call(t, denied, append(args, more...)...)
			require.Equal(t, 69, got.Code, "%v: %s", args, got.Err)
			require.Empty(t, got.Out, args)
			require.Contains(t, got.Err, "refused by the server at", args)
			require.Contains(t, got.Err, "+scan beside the smallest ACL")
		}
	}
}

// TestANameThatCannotBeReadIsSaidBesideTheOthers has a name of each kind that is somebody else's, a newer lock, and a
// damaged hold.
func TestANameThatCannotBeReadIsSaidBesideTheOthers(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := apptest.Server(t)
	redis := apptest.Got(s.Client(apptest.Patiently))(t)
	t.Cleanup(redis.Close)
	do := func(words ...string) {
		t.Helper()
		require.NoError(t, redis.Do(ctx, redis.B().Arbitrary(words...).Build()).Error())
	}
	apptest.Got(apptest.SemOf(t, s, "gpu", 4).Acquire(ctx, nil))(t)
	locks := apptest.LocksOf(t, s, node.Config{Lease: time.Hour})
	hold := apptest.Got(locks.Lock(ctx, "gpu", nil))(t)
	apptest.Filled(t, s, "gpu", "a")
	const advice = "; another program writes below the namespace: rename its key, or give Berth a --namespace of its own\n"
	for _, kind := range []string{"sem", "lock", "pool"} {
		do("SET", "berth:"+kind+":{broken}:state", "somebody else's")
		got := apptest.Call(t, s.URL(), kind, "ls").Ends(t, 65)
		require.Regexp(t, `(?m)^gpu `, got.Out)
		require.Contains(t, got.Err, "holds a string ")
		require.Contains(t, got.Err, "; another program writes below the namespace")
		require.Contains(t, apptest.Call(t, s.URL(), kind, "ls", "--json").Ends(t, 65).Out, `"name": "gpu"`)
	}
	got := apptest.Call(t, s.URL(), "ps").Ends(t, 65)
	require.Contains(t, got.Err, "berth: partial: there is more that was not read\n")
	require.Contains(t, got.Err, "broken")
	require.Len(t, firstColumn(got.Out), 2)
	got = apptest.Spawn(t, s.URL(), "run", "--lock", "broken", "--try", "true").Ends(t, 69)
	require.Regexp(t, `^berth: refused by the server at \S+: .* holds a string instead of a .*`+advice+"$", got.Err)
	require.Equal(t, apptest.Outcome(65, "", `berth: the state of "broken" is damaged: the key "berth:lock:{broken}:state" holds a string that is not Berth's`+advice),
		apptest.Spawn(t, s.URL(), "lock", "show", "broken"))
	require.Equal(t, apptest.Outcome(65, "What is stored as lock \"broken\" is not Berth's: something else writes below namespace \"berth\".\n", ""),
		apptest.Call(t, s.URL(), "lock", "explain", "broken"))

	do("HSET", "berth:lock:{newer}:state", "v", "9 words")
	require.Equal(t, apptest.Outcome(69, "Lock \"newer\" was written by a newer Berth (format 9); this one can say nothing of it.\n", ""),
		apptest.Call(t, s.URL(), "lock", "explain", "newer"))
	got = apptest.Call(t, s.URL(), "lock", "explain", "newer", "--json").Ends(t, 69)
	require.Contains(t, got.Out, `"code": "incompatible"`)
	require.Contains(t, got.Out, `"blockers": []`)

	go func() { _, _ = locks.Lock(ctx, "gpu", nil) }() // ends with the node
	apptest.WaitingFor(t, s, keyspace.Lock, "gpu")
	do("HSET", "berth:lock:{gpu}:state", "c:"+hold.ID(), "h rubbish")
	require.Contains(t, apptest.Call(t, s.URL(), "lock", "explain", "gpu", hold.ID()).Ends(t, 65).Out, "is damaged.")
}
