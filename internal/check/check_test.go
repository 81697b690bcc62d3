package check_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/check"
	"github.com/berth-go/berth/pkg/embedded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a server that says of itself what a test wants.
type fake struct {
	info    map[string]string // by section
	refuses map[string]string // the error, by command
	silent  string            // a command that is not answered
}

// good is a server that will do.
func good() *fake {
	return &fake{info: map[string]string{
		"server": "redis_version:7.0.15\nredis_mode:standalone", "memory": "maxmemory:100\nmaxmemory_policy:noeviction",
	}, refuses: map[string]string{"HELLO": "ERR unknown command 'HELLO'"}} // RESP2 only
}

// run checks the server, in virtual time. change completes the options.
func (f *fake) run(t *testing.T, change func(*check.Options)) (report berth.Report, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		mini := miniredis.NewMiniRedis()
		first, dialErr := mini.Dial() // starts it
		require.NoError(t, dialErr)
		require.NoError(t, first.Close())
		defer mini.Close()
		mini.Server().SetPreHook(func(c *server.Peer, cmd string, args ...string) bool {
			if text, ok := f.refuses[cmd]; ok {
				c.WriteError(text)
				return true
			}
			if cmd == "INFO" {
				c.WriteBulk("# Section\r\n" + strings.ReplaceAll(f.info[strings.ToLower(args[0])], "\n", "\r\n") + "\r\n")
				return true
			}
			return cmd == f.silent
		})
		option := rueidis.ClientOption{
			InitAddress: []string{"mini:0"}, DisableCache: true, ForceSingleClient: true,
			DialCtxFn: func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) { return mini.Dial() },
		}
		client, clientErr := rueidis.NewClient(option)
		require.NoError(t, clientErr)
		defer client.Close()
		o := check.Options{
			Client: client, Channel: "berth:wake:n", Timeout: 3 * time.Second,
			Trial: func(context.Context) error { return nil }, Notices: func(context.Context) []error { return nil },
		}
		if change != nil {
			change(&o)
		}
		report, err = check.Server(context.Background(), o)
	})
	return report, err
}

func TestAServerThatWillDoIsReportedWithoutWarnings(t *testing.T) {
	t.Parallel()
	report, err := good().run(t, nil)
	require.NoError(t, err)
	require.Equal(t, berth.Report{
		Server: "redis", Version: "7.0.15", Mode: "standalone", Eviction: "noeviction",
	}, report)
}

func TestTheVersionDecidesByNumberAndByServer(t *testing.T) {
	t.Parallel()
	const valkey = "redis_version:7.2.4\nserver_name:valkey\nserver_mode:cluster\nvalkey_version:"
	for info, want := range map[string]struct{ server, version, mode, refusal string }{
		"redis_version:7.0":                           {"redis", "7.0", "", ""},
		"redis_version:7.0.0\nredis_mode:sentinel":    {"redis", "7.0.0", "sentinel", ""},
		"redis_version:10.1.2":                        {"redis", "10.1.2", "", ""},
		"redis_version:8.0-rc1":                       {"redis", "8.0-rc1", "", ""},
		"redis_version:255.255.255":                   {"redis", "255.255.255", "", ""},
		"redis_version:6.2.14":                        {"", "", "", "redis at mini:0 is 6.2.14, needs 7.0"},
		"redis_version:6.10":                          {"", "", "", "is 6.10, needs 7.0"},
		"redis_version:7":                             {"redis", "7", "", ""},
		"redis_version:unstable":                      {"", "", "", "is unstable, needs 7.0"},
		valkey + "7.2.0":                              {"valkey", "7.2.0", "cluster", ""},
		valkey + "8.1.1":                              {"valkey", "8.1.1", "cluster", ""},
		valkey + "10.0.0":                             {"valkey", "10.0.0", "cluster", ""},
		valkey + "7.1.9":                              {"", "", "", "valkey at mini:0 is 7.1.9, needs 7.2"},
		"redis_version:7.1.0\nserver_name:other":      {"redis", "7.1.0", "", ""},
		"redis_version:7.2.4\nvalkey_version:7.0.0\n": {"redis", "7.2.4", "", ""},
	} {
		t.Run(info, func(t *testing.T) {
			t.Parallel()
			f := good()
			f.info["server"] = info
			report, err := f.run(t, nil)
			if want.refusal != "" {
				require.ErrorIs(t, err, berth.ErrIncompatible)
				require.ErrorContains(t, err, want.refusal)
				return
			}
			require.NoError(t, err)
			require.Equal(t, want.server, report.Server)
			require.Equal(t, want.version, report.Version)
			require.Equal(t, want.mode, report.Mode)
			require.Empty(t, report.Warnings)
		})
	}
}

func TestAServerThatEvictsIsRefusedUnlessThatIsAllowed(t *testing.T) {
	t.Parallel()
	const (
		refused = "refused"
		warned  = "warned"
		fine    = "fine"
	)
	for _, c := range []struct {
		memory  string
		allowed bool
		want    string
		policy  string
	}{
		{"maxmemory:100\nmaxmemory_policy:noeviction", false, fine, "noeviction"},
		{"maxmemory:0\nmaxmemory_policy:noeviction", true, fine, "noeviction"},
		{"maxmemory:100\nmaxmemory_policy:allkeys-lru", false, refused, "allkeys-lru"},
		{"maxmemory:100\nmaxmemory_policy:volatile-ttl", false, refused, "volatile-ttl"},
		{"maxmemory_policy:allkeys-lru", false, refused, "allkeys-lru"},
		{"maxmemory:100\nmaxmemory_policy:allkeys-lru", true, warned, "allkeys-lru"},
		{"maxmemory:0\nmaxmemory_policy:allkeys-lfu", false, warned, "allkeys-lfu"},
		{"maxmemory:100", false, warned, ""},
	} {
		t.Run(c.memory+" "+c.want, func(t *testing.T) {
			t.Parallel()
			f := good()
			f.info["memory"] = c.memory
			report, err := f.run(t, func(o *check.Options) { o.AllowEviction = c.allowed })
			require.Equal(t, c.policy, report.Eviction)
			if c.want == refused {
				var bad *berth.ConfigError
				require.ErrorAs(t, err, &bad)
				require.Equal(t, "maxmemory-policy", bad.Field)
				require.ErrorContains(t, err, c.policy)
				require.ErrorContains(t, err, "noeviction")
				return
			}
			require.NoError(t, err)
			if c.want == fine {
				require.Empty(t, report.Warnings)
				return
			}
			require.Len(t, report.Warnings, 1)
			require.Contains(t, report.Warnings[0], "policy")
			require.Contains(t, report.Warnings[0], "mini:0")
		})
	}
}

func TestWhatIsRefusedOrNotSaidIsAWarning(t *testing.T) {
	t.Parallel()
	for refused, warnings := range map[string][]string{
		"INFO":              {"version could not be asked", "eviction policy could not be asked"},
		"PUBLISH":           {"PUBLISH is refused"},
		"SUBSCRIBE PUBLISH": {"SUBSCRIBE is refused", "PUBLISH is refused"},
		"":                  {"does not say its version"},
	} {
		f := good()
		for _, command := range strings.Fields(refused) {
			f.refuses[command] = "NOPERM this user has no permissions"
		}
		if refused == "" {
			f.info["server"] = ""
		}
		report, err := f.run(t, nil)
		require.NoError(t, err)
		require.Equal(t, refused == "INFO", report.Version+report.Eviction == "", refused)
		require.Len(t, report.Warnings, len(warnings))
		for i, says := range warnings {
			require.Contains(t, report.Warnings[i], says)
		}
	}
}

func TestWhatElseIsRefusedIsAnError(t *testing.T) {
	t.Parallel()
	for command, c := range map[string]struct{ answers, says string }{
		"EVAL":      {"READONLY You can't write against a read only replica.", "the address leads to a replica"},
		"SUBSCRIBE": {"ERR unknown command 'SUBSCRIBE'", "subscribing to wake-ups"},
		"PING":      {"NOAUTH Authentication required.", "NOAUTH"},
	} {
		f := good()
		f.refuses[command] = c.answers
		_, err := f.run(t, func(o *check.Options) {
			o.Trial = func(ctx context.Context) error {
				return o.Client.Do(ctx, o.Client.B().Eval().Script("return 1").Numkeys(0).Build()).Error()
			}
		})
		require.ErrorContains(t, err, c.says)
		require.ErrorContains(t, err, strings.TrimPrefix(c.answers, "ERR "))
	}
}

func TestASubscribeWithoutAnAnswerIsAnError(t *testing.T) {
	t.Parallel()
	f := good()
	f.silent = "SUBSCRIBE"
	_, err := f.run(t, nil)
	require.ErrorContains(t, err, "subscribing to wake-ups")
	require.ErrorIs(t, err, berth.ErrUnavailable)
	require.NotErrorIs(t, err, context.DeadlineExceeded, "nobody's context has ended")
}

func TestAFailedTrialIsAnError(t *testing.T) {
	t.Parallel()
	mine := errors.New("my own")
	_, err := good().run(t, func(o *check.Options) { o.Trial = func(context.Context) error { return mine } })
	require.ErrorIs(t, err, mine)
}

func TestTheEmbeddedServerGivesWarningsOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mini, err := embedded.Start()
		require.NoError(t, err)
		defer mini.Close()
		client, err := mini.Client()
		require.NoError(t, err)
		defer client.Close()
		report, err := check.Server(t.Context(), check.Options{
			Client: client, Channel: "berth:wake:n", Timeout: time.Second,
			Trial: func(context.Context) error { return nil }, Notices: func(context.Context) []error { return nil },
		})
		require.NoError(t, err)
		require.NotEmpty(t, report.Warnings)
		require.Empty(t, report.Version)
	})
}
