package app_test

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

// completed are the candidates of a completion that has succeeded.
func completed(t *testing.T, url string, args ...string) []string {
	t.Helper()
	got := apptest.Call(t, url, append([]string{"__complete"}, args...)...).Ends(t, 0)
	candidates, found := strings.CutSuffix(got.Out, ":4\n")
	require.True(t, found, got.Out)
	return strings.Fields(candidates)
}

func TestCompletionKnowsClaimsResourcesAndBindings(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	ctx := context.Background()
	pool := apptest.Filled(t, s, "proxies", "a", "b", apptest.Wild)
	require.NoError(t, pool.Bind(ctx, "customer", "a", nil))
	require.NoError(t, pool.Bind(ctx, apptest.Wild, "a", nil))
	held := apptest.Got(pool.Allocate(ctx, &allocator.AllocateOptions{Bind: "shop"}))(t)
	locks := apptest.LocksOf(t, s, node.Config{})
	lock := apptest.Got(locks.Lock(ctx, "gpu", nil))(t)
	go func() { _, _ = locks.Lock(ctx, "gpu", nil) }() // ends with the node
	waiter := apptest.WaitingFor(t, s, keyspace.Lock, "gpu")
	permit := apptest.Got(apptest.SemOf(t, s, "gpu", 1).Acquire(ctx, nil))(t)

	url := s.URL()
	require.ElementsMatch(t, []string{lock.ID(), waiter}, completed(t, url, "lock", "release", "gpu", ""))
	require.Equal(t, []string{waiter}, completed(t, url, "lock", "release", "gpu", waiter))
	require.Equal(t, []string{permit.ID()}, completed(t, url, "sem", "release", "gpu", ""))
	for name, lines := range map[string][]string{
		"gpu": {
			"release --kind lock", "sem pause", "sem show", "sem resize", "sem explain", "sem sweep", "run --sem",
			"lock show", "lock release", "lock extend", "run --lock",
		},
		"proxies": {
			"release --kind pool", "pool show", "pool next", "pool add", "pool rest", "pool check", "run --pool",
			"pool binding ls", "pool binding set", "pool binding remove",
		},
	} {
		for _, line := range lines {
			require.Equal(t, []string{name}, completed(t, url, append(strings.Fields(line), "")...), line)
			require.Equal(t, []string{name}, completed(t, url, append(strings.Fields(line), name[:1])...), line)
		}
	}
	require.ElementsMatch(t, []string{lock.ID(), waiter}, completed(t, url, "lock", "explain", "gpu", ""))
	for _, verb := range []string{"release", "want", "pause", "unpause", "sweep"} {
		require.Equal(t, []string{"gpu", "proxies"}, completed(t, url, verb, ""), verb)
	}
	require.ElementsMatch(t, []string{lock.ID(), waiter, permit.ID()}, completed(t, url, "want", "gpu", ""))
	require.Equal(t, []string{permit.ID()}, completed(t, url, "release", "--kind", "sem", "gpu", ""))
	require.Empty(t, completed(t, url, "pause", "--kind", "pool", "g"))
	require.ElementsMatch(t, []string{held.ID(), "a", "b"}, completed(t, url, "release", "proxies", ""))
	require.Equal(t, []string{"sem", "lock", "pool"}, completed(t, url, "unpause", "--kind", ""))
	require.ElementsMatch(t, []string{held.ID(), "a", "b"}, completed(t, url, "pool", "release", "proxies", ""))
	require.Equal(t, []string{"a", "b"}, completed(t, url, "pool", "release", "proxies", "--resource", ""))
	for _, command := range [][]string{{"show", "proxies"}, {"rest", "proxies"}, {"remove", "proxies"}, {"binding", "set", "proxies", "customer"}} {
		require.Equal(t, []string{"a", "b"}, completed(t, url, append(append([]string{"pool"}, command...), "")...))
	}
	require.Equal(t, []string{"b"}, completed(t, url, "pool", "remove", "proxies", "a", ""))
	for _, command := range []string{"set", "remove"} {
		require.Equal(t, []string{"customer", "shop"}, completed(t, url, "pool", "binding", command, "proxies", ""))
	}
	for _, line := range []string{"sem sweep gpu", "sem show gpu", "pool add proxies", "run --bind"} {
		require.Empty(t, completed(t, url, append(strings.Fields(line), "")...), line)
	}
	require.Empty(t, completed(t, url, "lock", "release", "x{", ""), "a name that cannot be")
	require.Equal(t, []string{"customer", "shop"}, completed(t, url, "run", "--pool", "proxies", "--bind", ""))
	require.Equal(t, []string{"shop"}, completed(t, url, "run", "--pool", "proxies", "--bind", "s"))
	require.Equal(t, []string{"a", "b"}, completed(t, url, "run", "--pool", "proxies", "--resource", ""))
	require.Equal(t, []string{"fail", "wait", "work", "extend"}, completed(t, url, "run", "--conflict", ""))
	require.Equal(t, []string{"queued", "random", "lifo"}, completed(t, url, "run", "--access", ""))
	require.Equal(t, []string{"state", "name", "held", "share", "waiting", "wait", "hold"}, completed(t, url, "sem", "ls", "--sort", ""))
}

// A shell offers files where it is told nothing else.
func TestFilesAreOfferedOnlyWhereAFileIsMeant(t *testing.T) {
	t.Parallel()
	const noFiles, files = ":4\n", ":0\n"
	for line, want := range map[string]string{
		"drain --label": noFiles, "drain --node": noFiles, "drain --reason": noFiles, "ps --label": noFiles, "ps --node": noFiles,
		"ps --owner": noFiles, "release --node": noFiles, "want --node": noFiles, "pause --for": noFiles, "ps --namespace": noFiles,
		"check --redis-ca": files, "pool add proxies --file": files, "pool check proxies --exec": files,
	} {
		require.Equal(t, want, apptest.Call(t, apptest.Nobody, append(append([]string{"__complete"}, strings.Fields(line)...), "")...).Out, line)
	}
}

// More than a plain word is offered alone, or not at all: a shell types the beginning that candidates share, and runs it
// at the next Tab.
func TestCompletionOffersAlone(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	for name, tt := range map[string]struct{ pool, offered []string }{
		"two":     {[]string{"e$(id)x", "e$(id)y"}, nil},
		"beside":  {[]string{"b;id", "http://10.0.0.1:80/%20,a+b@c", "日本"}, []string{"http://10.0.0.1:80/%20,a+b@c", "日本"}},
		"one":     {[]string{"a'b(id)"}, []string{"a'b(id)"}},
		"signs":   {[]string{"~root", "=ls", "a=~", "%self", "a{b", "c!d", "e\\", "f*"}, nil},
		"a flag":  {[]string{"--all"}, nil},
		"a home":  {[]string{"~root"}, nil},
		"a lie":   {[]string{"_activeHelp_ x"}, nil},
		"control": {[]string{"a\x1b[2J"}, nil},
		"lines":   {[]string{"a\nid"}, nil},
	} {
		pool := strings.ReplaceAll(name, " ", "-")
		apptest.Filled(t, s, pool, tt.pool...)
		require.ElementsMatch(t, tt.offered, completed(t, s.URL(), "pool", "rest", pool, ""), name)
	}
}

// TestACompletionGivesUpInTime asks a server that never answers.
func TestACompletionGivesUpInTime(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") // it accepts nothing
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	before := app.Times.Complete
	app.Times.Complete = 1
	defer func() { app.Times.Complete = before }()
	for _, args := range [][]string{{"lock", "release", "gpu", ""}, {"pool", "release", "gpu", ""}, {"pool", "show", ""}} {
		got := apptest.Call(t, "redis://"+listener.Addr().String()+"?dial_timeout=10m", append([]string{"__complete"}, args...)...)
		require.Equal(t, ":1\n", got.Out)
		require.NotContains(t, got.Err, "berth:")
	}
}
