package embedded

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/berth-go/berth"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

func TestListensOnLoopbackOnly(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{
		"", "127.0.0.1", ":0", ":6379", "0.0.0.0:0", "[::]:0", "192.0.2.1:6379",
		"[2001:db8::1]:6379", "example.com:6379", "localhost", "127.0.0.1:", "127.0.0.1:http",
		"127.0.0.1:65536", "127.0.0.1:-1", "redis://127.0.0.1:6379",
	} {
		t.Run(addr, func(t *testing.T) {
			t.Parallel()
			server, err := StartListening(addr)
			require.ErrorIs(t, err, berth.ErrInvalidConfig)
			var refused *berth.ConfigError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, "addr", refused.Field)
			require.Nil(t, server)
		})
	}
}

func TestParseLoopback(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{
		"127.0.0.1:0":    "127.0.0.1:0",
		"127.0.0.2:6379": "127.0.0.2:6379",
		"localhost:6379": "127.0.0.1:6379",
		"[::1]:6379":     "[::1]:6379",
	} {
		parsed, err := parseLoopback(addr)
		require.NoError(t, err, addr)
		require.Equal(t, want, parsed.String())
	}
}

func TestAddressInUse(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()

	_, err = StartListening(taken.Addr().String())
	var refused *net.OpError
	require.ErrorAs(t, err, &refused)
	require.NotErrorIs(t, err, berth.ErrInvalidConfig)
}

func TestURL(t *testing.T) {
	t.Parallel()
	server, err := StartListening("localhost:0")
	require.NoError(t, err)
	defer server.Close()
	require.Regexp(t, `^redis://127\.0\.0\.1:[1-9]\d*\?client_cache=0$`, server.URL())

	silent, err := Start()
	require.NoError(t, err)
	defer silent.Close()
	require.Empty(t, silent.URL())
}

func TestServersShareNothing(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for range 2 {
		server, err := Start()
		require.NoError(t, err)
		defer server.Close()
		client, err := server.Client()
		require.NoError(t, err)
		defer client.Close()
		keys, err := client.Do(ctx, client.B().Dbsize().Build()).AsInt64()
		require.NoError(t, err)
		require.Zero(t, keys)
		require.NoError(t, client.Do(ctx, client.B().Set().Key("k").Value("v").Build()).Error())
	}
}

func TestCloseIsFinal(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func() (*Server, error){
		"in memory": Start,
		"listening": func() (*Server, error) { return StartListening("127.0.0.1:0") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, err := start()
			require.NoError(t, err)
			client, err := server.Client(func(option *rueidis.ClientOption) { option.DisableRetry = true })
			require.NoError(t, err)
			defer client.Close()
			server.Close()
			server.Close()

			// Neither a new client nor one that reconnects brings it back.
			_, err = server.Client()
			require.ErrorIs(t, err, net.ErrClosed)
			require.Eventually(t, func() bool { // the first may still meet the connection that broke
				return errors.Is(client.Do(context.Background(), client.B().Ping().Build()).Error(), net.ErrClosed)
			}, patience, time.Millisecond)
			require.Nil(t, server.mini.Server())
		})
	}
}
