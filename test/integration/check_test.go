package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/node"
)

// serverInfo is what INFO says, as far as anybody asks.
func serverInfo(server, version string) string {
	return strings.Join([]string{
		"# Server", server + "_version:" + version, "redis_mode:standalone", "server_name:" + server,
		"# Memory", "maxmemory:0", "maxmemory_policy:noeviction", "",
	}, "\r\n")
}

func TestCheckRefusesAnOldServer(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ server, version, needs string }{
		{"redis", "6.2.14", "7.0"},
		{"redis", "5.0.3", "7.0"},
		{"redis", "6.255.255", "7.0"},
		{"valkey", "7.1.9", "7.2"},
	} {
		t.Run(test.server+" "+test.version, func(t *testing.T) {
			t.Parallel()
			s := newStub(t, serverInfo(test.server, test.version))
			redis, err := rueidis.NewClient(rueidis.ClientOption{
				InitAddress: []string{s.listener.Addr().String()}, DisableCache: true, AlwaysRESP2: true,
			})
			require.NoError(t, err)
			t.Cleanup(redis.Close)
			n, err := node.New(redis, node.Config{})
			require.NoError(t, err)
			_, err = n.Check(t.Context())
			require.ErrorIs(t, err, berth.ErrIncompatible)
			require.ErrorContains(t, err, test.server)
			require.ErrorContains(t, err, test.version)
			require.ErrorContains(t, err, test.needs)
			require.False(t, s.has("EVALSHA") || s.has("EVAL"), "a script was sent to a server that is too old")
			require.NoError(t, n.Close(t.Context()))
		})
	}
}

func TestCheckRefusesAServerThatEvicts(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"allkeys-lru", "volatile-ttl"} {
		t.Run(policy, func(t *testing.T) {
			w := private(t, "--maxmemory", "3mb", "--maxmemory-policy", policy)
			_, err := w.node(node.Config{}).Check(w.Within(patience))
			require.ErrorIs(t, err, berth.ErrInvalidConfig)
			var bad *berth.ConfigError
			require.ErrorAs(t, err, &bad)
			require.Equal(t, "maxmemory-policy", bad.Field)
			require.ErrorContains(t, err, policy)

			report, err := w.node(node.Config{AllowEviction: true}).Check(w.Within(patience))
			require.NoError(t, err)
			require.Equal(t, policy, report.Eviction)
			require.Len(t, report.Warnings, 1)
			require.Contains(t, report.Warnings[0], policy)
		})
	}
}

// check is that of a node with a semaphore.
func (w *world) check(edits ...func(*rueidis.ClientOption)) (berth.Report, error) {
	w.Helper()
	n := w.node(node.Config{}, edits...)
	w.sem(n, "gpu", 1)
	return n.Check(w.Within(patience))
}

func TestCheckOfAServerThatWillDo(t *testing.T) {
	w := private(t)
	report, err := w.check()
	require.NoError(t, err)
	t.Logf("%+v", report)
	require.Equal(t, w.info("server", "redis_version"), report.Version)
	require.Equal(t, "redis", report.Server)
	require.Equal(t, "standalone", report.Mode)
	require.Equal(t, "noeviction", report.Eviction)
	require.Positive(t, report.Latency)
	require.Empty(t, report.Warnings)
	for _, key := range w.keys() {
		ttl, err := w.do("PTTL", key).AsInt64()
		require.NoError(t, err)
		require.Positive(t, ttl, "%s is left for good", key)
	}
}

// What may not be asked, and what only wake-ups need, is a warning; what else is missing is an error that says so.
func TestCheckOfAUserWhoMayNotAskOrDoEverything(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ rules, warning, refusal string }{
		{"-info", "version could not be asked", ""},
		{"-publish", "PUBLISH", ""},
		{"-subscribe", "SUBSCRIBE", ""},
		{"resetchannels", "SUBSCRIBE", ""},
		{"-zadd", "", "ACL"},
		{"-evalsha -eval", "", "ACL"},
	} {
		t.Run(test.rules, func(t *testing.T) {
			w := private(t)
			user := w.user("+@all ~* &* " + test.rules)
			report, err := w.check(user)
			if test.refusal != "" {
				require.ErrorContains(t, err, test.refusal)
				return
			}
			require.NoError(t, err)
			require.Contains(t, fmt.Sprint(report.Warnings), test.warning)
		})
	}
}

// user makes a user with these rules, and returns what makes a client log in as
// that user.
func (w *world) user(rules string) func(*rueidis.ClientOption) {
	w.Helper()
	w.do(append([]string{"ACL", "SETUSER", "narrow", "on", ">secret"}, strings.Fields(rules)...)...)
	return func(o *rueidis.ClientOption) { o.Username, o.Password = "narrow", "secret" }
}
