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
	redis, err := s.Client(apptest.Patiently)
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	const lease = time.Hour // nobody renews what is forged
	sem := semaphore.New(apptest.NodeOf(t, s, node.Config{Lease: lease}), "gpu", 4, nil)
	permit, err := sem.Acquire(ctx, nil)
	require.NoError(t, err)
	_, err = apptest.LocksOf(t, s, node.Config{Lease: lease}).Lock(ctx, "gpu", nil)
	require.NoError(t, err)
	pool := apptest.PoolOf(t, s, "gpu", node.Config{Lease: lease})
	_, err = pool.Add(ctx, []string{"a", "key " + evil}, nil)
	require.NoError(t, err)
	_, err = pool.Allocate(ctx, nil)
	require.NoError(t, err)
	for _, kind := range []string{"sem", "lock", "pool"} {
		forged(t, redis, kind, "gpu", evil)
	}
	// A name with one plain hold is one text.
	plain, err := apptest.LocksOf(t, s, node.Config{}).Lock(ctx, "plain", nil)
	require.NoError(t, err)
	text, err := redis.Do(ctx, redis.B().Get().Key("berth:lock:{plain}:state").Build()).ToString()
	require.NoError(t, err)
	require.Contains(t, text, plain.ID())
	text = strings.Replace(text, plain.ID(), evil+".1", 1)
	require.NoError(t, redis.Do(ctx, redis.B().Set().Key("berth:lock:{plain}:state").Value(text).Build()).Error())
	for _, args := range [][]string{
		{"sem", "ls"},
		{"lock", "ls"},
		{"pool", "ls"},
		{"sem", "show", "gpu"},
		{"lock", "show", "gpu"},
		{"lock", "show", "plain"},
		{"lock", "queue", "gpu"},
		{"pool", "show", "gpu", "--all"},
		{"pool", "inspect", "gpu"},
		{"sem", "explain", "gpu"},
		{"lock", "explain", "gpu"},
		{"pool", "explain", "gpu"},
		{"sem", "explain", "gpu", evil},
		{"explain", "--cycles"},
		{"sem", "release", "gpu", evil + "2", "--force"},
		{"lock", "show", evil},
		{"lock", "explain", evil},
	} {
		for _, more := range [][]string{nil, {"--json"}} {
			got := apptest.Call(t, s.URL(), append(args, more...)...)
			all := strings.ReplaceAll(got.Out+got.Err, "\n", "")
			require.Equal(t, -1, strings.IndexFunc(all, func(r rune) bool { return !unicode.IsPrint(r) || hidden.Hidden(r) }), "%v: %q", args, all)
		}
	}
	got := apptest.Call(t, s.URL(), "sem", "show", "gpu")
	require.Equal(t, 65, got.Code)
	require.Contains(t, got.Out, permit.ID(), "what can be read is shown beside")
	require.Equal(t, `berth: claim "\x1b[2J\u009b2J\u202e" of "gpu" is damaged: its id is not one of Berth's`+"\n", got.Err)
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
	for _, args := range [][]string{
		{"sem", "ls"},
		{"lock", "ls"},
		{"pool", "ls"},
		{"sem", "show", "x"},
		{"lock", "show", "x"},
		{"lock", "queue", "x"},
		{"pool", "show", "x"},
		{"pool", "inspect", "x"},
		{"lock", "explain", "x"},
		{"swarm", "status"},
	} {
		for _, more := range [][]string{nil, {"--json"}} {
			got := apptest.Call(t, denied, append(args, more...)...)
			require.Equal(t, 69, got.Code, "%v: %s", args, got.Err)
			require.Empty(t, got.Out, args)
			require.Contains(t, got.Err, "refused by the server at", args)
			require.Contains(t, got.Err, "+scan beside the smallest ACL")
		}
	}
}

// TestAListingShowsWhatAPartOfAClusterAnswered has a name that cannot be read among
// others.
func TestAListingShowsWhatAPartOfAClusterAnswered(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := apptest.Server(t)
	redis, err := s.Client(apptest.Patiently)
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	_, err = apptest.SemOf(t, s, "gpu", 4).Acquire(ctx, nil)
	require.NoError(t, err)
	_, err = apptest.LocksOf(t, s, node.Config{}).Lock(ctx, "gpu", nil)
	require.NoError(t, err)
	_, err = apptest.PoolOf(t, s, "gpu", node.Config{}).Add(ctx, []string{"a"}, nil)
	require.NoError(t, err)
	for _, kind := range []string{"sem", "lock", "pool"} {
		set := redis.B().Set().Key("berth:" + kind + ":{broken}:state").Value("somebody else's").Build()
		require.NoError(t, redis.Do(ctx, set).Error())
		got := apptest.Call(t, s.URL(), kind, "ls")
		require.Equal(t, 65, got.Code)
		require.Regexp(t, `(?m)^gpu `, got.Out)
		require.Contains(t, got.Err, "holds a string ")
		require.Contains(t, got.Err, "; another program writes below the namespace")
		got = apptest.Call(t, s.URL(), kind, "ls", "--json")
		require.Equal(t, 65, got.Code)
		require.Contains(t, got.Out, `"name": "gpu"`)
	}
}
