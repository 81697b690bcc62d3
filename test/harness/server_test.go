package harness

import (
	"context"
	"net"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

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
		first, second := Shared(t), Shared(t)
		require.Same(t, first, second)
		require.NoError(t, set(t, first.Client(t), Namespace(t), "v"))
	})
}

// Each step on a process, and on a container where Docker has one.
func TestAServerIsStoppedKilledAndRestarted(t *testing.T) {
	t.Parallel()
	kinds := map[string]maker{"process": {"redis-server", newProcess}}
	if _, err := docker(); err == nil {
		kinds["container"] = maker{"a container", newContainer}
	}
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := private(t, []maker{kind})
			addr, client := s.Addr, s.Client(t)
			require.NoError(t, set(t, client, "k", "v"))

			s.Stop(t) // connections stay, and nothing is answered
			ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
			defer cancel()
			require.ErrorIs(t, client.Do(ctx, client.B().Ping().Build()).Error(), context.DeadlineExceeded)
			s.Cont(t)
			value, err := get(t, client, "k")
			require.NoError(t, err)
			require.Equal(t, "v", value)

			conn := dial(t, addr)
			s.Kill(t)
			require.Zero(t, s.PID())
			requireBroken(t, conn)
			require.Error(t, ping(within(t, settleLimit), addr))
			s.Kill(t) // again is no error

			s.Restart(t)
			require.Equal(t, addr, s.Addr)
			_, err = get(t, client, "k")
			require.True(t, rueidis.IsRedisNil(err), "it has forgotten the data: %v", err)
			s.Stop(t)
			s.Restart(t) // what is stopped can be killed
			require.NoError(t, set(t, s.Client(t), "k", "v"))
		})
	}
}

func TestAnAddressIsParsed(t *testing.T) {
	t.Parallel()
	_, err := parse("redis://u:secret@127.0.0.1:port")
	require.Error(t, err)
	require.NotContains(t, err.Error(), "secret")
	s, err := parse("redis://user:pass@127.0.0.1:7/2")
	require.NoError(t, err)
	p := &Proxied{Addr: "127.0.0.1:9", server: s}
	require.Equal(t, "redis://user:pass@127.0.0.1:9/2", p.URL(), "a proxy's keeps the rest")
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

// portVariable names the port that a child is to draw.
const portVariable = "BERTH_TEST_PORT"

func TestAPortIsOfOneProcess(t *testing.T) {
	addr, err := freeAddr()
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	number, err := strconv.ParseInt(port, 10, 64)
	require.NoError(t, err)
	ours, err := own(number)
	require.NoError(t, err)
	require.False(t, ours, "it is drawn once")

	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChildThatDrawsAPort$", "-test.v")
	child.Env = append(os.Environ(), portVariable+"="+port)
	said, err := child.CombinedOutput()
	require.NoError(t, err)
	require.Contains(t, string(said), "drawn: false")
}

// TestChildThatDrawsAPort is the other process.
func TestChildThatDrawsAPort(t *testing.T) {
	if os.Getenv(portVariable) == "" {
		return
	}
	number, err := strconv.ParseInt(os.Getenv(portVariable), 10, 64)
	require.NoError(t, err)
	ours, err := own(number)
	require.NoError(t, err)
	t.Log("drawn:", ours)
}

func TestMain(m *testing.M) { os.Exit(Main(m)) }
