package harness

import (
	"context"
	"net"
	"os"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

func TestStartGivesAServerOfItsOwnWithTheSettings(t *testing.T) {
	t.Parallel()
	a := Start(t, "--maxmemory", "3mb", "--maxmemory-policy", "noeviction")
	b := Start(t)
	require.NotEqual(t, a.Addr, b.Addr)
	require.True(t, a.Private())
	require.NotEqual(t, a.PID(), b.PID())

	ctx := within(t, settleLimit)
	client := a.Client(t)
	got, err := client.Do(ctx, client.B().ConfigGet().Parameter("maxmemory").Parameter("maxmemory-policy").Build()).AsStrMap()
	require.NoError(t, err)
	require.Equal(t, map[string]string{"maxmemory": "3145728", "maxmemory-policy": "noeviction"}, got)
}

func TestStartSaysWhyAServerDoesNotRun(t *testing.T) {
	t.Parallel()
	_, err := newProcess([]string{"--maxmemory", "many"})
	require.ErrorContains(t, err, "ended before it was ready")
	require.ErrorContains(t, err, "maxmemory")
}

func TestNothingIsLeftAfterATest(t *testing.T) {
	t.Parallel()
	var s *Server
	var dir string
	t.Run("inner", func(t *testing.T) {
		s = Start(t)
		if p, ok := s.engine.(*process); ok {
			dir = p.dir
		}
	})
	_, err := net.Dial("tcp", s.Addr)
	require.Error(t, err, "the server still listens")
	_, err = os.Stat(dir)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestRedisIsPrivateUnlessOneIsGiven(t *testing.T) {
	given := Start(t)
	for _, test := range []struct{ name, env string }{
		{"an address", given.Addr},
		{"a URL", "redis://" + given.Addr + "/3"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("BERTH_TEST_REDIS", test.env)
			for _, s := range []*Server{Redis(t), Shared(t)} {
				require.Equal(t, given.Addr, s.Addr)
				require.False(t, s.Private())
				require.Zero(t, s.PID())
				require.NoError(t, set(t, s.Client(t), "k", "v"))
			}
			require.True(t, Start(t).Private(), "Start never takes what is given")
		})
	}
	t.Run("none", func(t *testing.T) {
		t.Setenv("BERTH_TEST_REDIS", "")
		s := Redis(t)
		require.True(t, s.Private())
		require.NotEqual(t, given.Addr, s.Addr)
		require.NoError(t, set(t, s.Client(t), "k", "v"))
	})
}

func TestSharedIsOneServer(t *testing.T) {
	t.Setenv("BERTH_TEST_REDIS", "")
	first, second := Shared(t), Shared(t)
	require.Same(t, first, second)
	require.NoError(t, set(t, first.Client(t), Namespace(t), "v"))
}

func TestARestartKeepsTheAddressAndForgetsTheData(t *testing.T) {
	t.Parallel()
	onEachKind(t, func(t *testing.T, s *Server) {
		addr := s.Addr
		client := s.Client(t)
		require.NoError(t, set(t, client, "k", "v"))

		s.Restart(t)

		require.Equal(t, addr, s.Addr)
		_, err := get(t, client, "k")
		require.True(t, rueidis.IsRedisNil(err), "got %v", err)
	})
}

func TestKillEndsTheServerUntilARestart(t *testing.T) {
	t.Parallel()
	onEachKind(t, func(t *testing.T, s *Server) {
		conn := dial(t, s.Addr)
		s.Kill(t)
		require.Zero(t, s.PID())
		requireBroken(t, conn)
		require.Error(t, ping(within(t, settleLimit), s.Addr))
		s.Kill(t) // again is no error

		s.Restart(t)
		require.NoError(t, set(t, s.Client(t), "k", "v"))
	})
}

func TestAStoppedServerKeepsConnectionsAndAnswersNothing(t *testing.T) {
	t.Parallel()
	onEachKind(t, func(t *testing.T, s *Server) {
		client := s.Client(t)
		require.NoError(t, set(t, client, "k", "v"))

		s.Stop(t)
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		defer cancel()
		err := client.Do(ctx, client.B().Ping().Build()).Error()
		require.ErrorIs(t, err, context.DeadlineExceeded)

		s.Cont(t)
		value, err := get(t, client, "k")
		require.NoError(t, err)
		require.Equal(t, "v", value)
	})
}

func TestAStoppedServerCanBeKilled(t *testing.T) {
	t.Parallel()
	onEachKind(t, func(t *testing.T, s *Server) {
		s.Stop(t)
		s.Restart(t)
		require.NoError(t, set(t, s.Client(t), "k", "v"))
	})
}

// onEachKind runs a test on a process, and on a container where Docker has one.
func onEachKind(t *testing.T, test func(*testing.T, *Server)) {
	t.Helper()
	kinds := map[string]maker{"process": {"redis-server", newProcess}}
	if _, err := docker(); err == nil {
		kinds["container"] = maker{"a container", newContainer}
	}
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, private(t, []maker{kind}))
		})
	}
}

func TestNamespacesDiffer(t *testing.T) {
	t.Parallel()
	first, second := Namespace(t), Namespace(t)
	require.NotEqual(t, first, second)
	require.Regexp(t, `^TestNamespacesDiffer-[a-z0-9]{10}$`, first)
}

func TestABadAddressIsToldWithoutItsPassword(t *testing.T) {
	t.Parallel()
	_, err := parse("redis://u:secret@127.0.0.1:port")
	require.Error(t, err)
	require.NotContains(t, err.Error(), "secret")
}

// within bounds what a test waits for.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func set(t *testing.T, c rueidis.Client, key, value string) error {
	t.Helper()
	return c.Do(within(t, settleLimit), c.B().Set().Key(key).Value(value).Ex(time.Hour).Build()).Error()
}

func get(t *testing.T, c rueidis.Client, key string) (string, error) {
	t.Helper()
	return c.Do(within(t, settleLimit), c.B().Get().Key(key).Build()).ToString()
}
