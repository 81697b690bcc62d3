package embedded

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
)

func TestListensOnLoopbackOnly(t *testing.T) {
	t.Parallel()
	for _, addr := range []string{
		"", "127.0.0.1", ":0", ":6379", "0.0.0.0:0", "[::]:0", "192.0.2.1:6379",
		"[2001:db8::1]:6379", "example.com:6379", "localhost", "127.0.0.1:", "127.0.0.1:http",
		"127.0.0.1:65536", "127.0.0.1:-1", "redis://127.0.0.1:6379",
	} {
		server, err := StartListening(addr)
		require.ErrorIs(t, err, berth.ErrInvalidConfig, addr)
		var refused *berth.ConfigError
		require.ErrorAs(t, err, &refused, addr)
		require.Equal(t, "addr", refused.Field, addr)
		require.Nil(t, server, addr)
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
	server := started(t, func() (*Server, error) { return StartListening("localhost:0") })
	require.Regexp(t, `^redis://127\.0\.0\.1:[1-9]\d*\?client_cache=0$`, server.URL())
	require.Empty(t, started(t, Start).URL())
}

func TestServersShareNothing(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for range 2 {
		client := clientOf(t, started(t, Start))
		keys, err := client.Do(ctx, client.B().Dbsize().Build()).AsInt64()
		require.NoError(t, err)
		require.Zero(t, keys)
		require.NoError(t, client.Do(ctx, client.B().Set().Key("k").Value("v").Build()).Error())
	}
}

func TestCloseIsFinal(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func() (*Server, error){
		"in memory": Start, "listening": listening,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := started(t, start)
			client := clientOf(t, server, func(option *rueidis.ClientOption) { option.DisableRetry = true })
			server.Close()
			server.Close()

			// Neither a new client nor one that reconnects brings it back.
			_, err := server.Client()
			require.ErrorIs(t, err, net.ErrClosed)
			require.Eventually(t, func() bool { // the first may still meet the connection that broke
				return errors.Is(client.Do(context.Background(), client.B().Ping().Build()).Error(), net.ErrClosed)
			}, patience, time.Millisecond)
			require.Nil(t, server.mini.Server())
		})
	}
}

func TestScriptKeysShareATag(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		keys    []string
		refused bool
	}{
		"no key":                  {nil, false},
		"one key":                 {[]string{"a"}, false},
		"one tag":                 {[]string{"{n}:a", "berth:sem:{n}:b", "{n}", "n"}, false},
		"no tag":                  {[]string{"a", "b"}, true},
		"two tags":                {[]string{"x:{a}", "x:{b}"}, true},
		"tag only in the first":   {[]string{"x:{a}", "x"}, true},
		"empty tag is no tag":     {[]string{"{}a", "{}b"}, true},
		"open tag is no tag":      {[]string{"{a", "{ab"}, true},
		"only the first tag":      {[]string{"{a}{x}", "{a}{y}"}, false},
		"the first closing brace": {[]string{"{a}x}", "{a}y}"}, false},
		"brace inside of a tag":   {[]string{"{{a}", "{{b}"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, client rueidis.Client) {
				ctx := context.Background()
				sha, err := client.Do(ctx, client.B().ScriptLoad().Script(`return "ran"`).Build()).ToString()
				require.NoError(t, err)
				byHash := client.Do(ctx, client.B().Evalsha().Sha1(sha).
					Numkeys(int64(len(c.keys))).Key(c.keys...).Build()).Error()
				_, byText := eval(client, `return "ran"`, c.keys)
				for _, err := range []error{byText, byHash} {
					if c.refused {
						require.EqualError(t, err, "CROSSSLOT Keys in request don't hash to the same slot")
					} else {
						require.NoError(t, err)
					}
				}
			})
		})
	}
}

// The arguments after the keys are no keys, and wrong counts are left to
// miniredis.
func TestScriptArgumentsAreNotKeys(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, client rueidis.Client) {
		got, err := eval(client, `return ARGV`, []string{"{n}"}, "{a}", "{b}")
		require.NoError(t, err)
		require.Equal(t, []any{"{a}", "{b}"}, got)

		for _, numkeys := range []string{"3", "-1", "x"} {
			err := client.Do(context.Background(),
				client.B().Arbitrary("EVAL", "return 1", numkeys, "a", "b").Build()).Error()
			require.Error(t, err)
			require.NotContains(t, err.Error(), "CROSSSLOT")
		}
		err = client.Do(context.Background(), client.B().Arbitrary("EVAL", "return 1").Build()).Error()
		require.ErrorContains(t, err, "wrong number of arguments")
	})
}
