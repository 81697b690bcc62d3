package app_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/cmd/berth/internal/apptest"
)

func TestCheckOfAServerThatWillDo(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	got := apptest.Call(t, s.URL(), "check").Ends(t, 0)
	require.Regexp(t, `^address   127\.0\.0\.1:\d+\n`, got.Out)
	require.Regexp(t, `\nlatency   [\d.]+(µs|ms)\n`, got.Out)
	require.Contains(t, got.Out, "\nwarning: ", "the embedded server tells little of itself")
	require.True(t, strings.HasSuffix(got.Out, "The server will do.\n"), got.Out)

	got = apptest.Call(t, s.URL(), "check", "--json").Ends(t, 0)
	document := apptest.Read[map[string]any](t, got.Out)
	require.Equal(t, true, document["ok"])
	require.NotEmpty(t, document["warnings"])
	for _, field := range []string{"problem", "address", "server", "version", "mode", "eviction", "latencyMs"} {
		require.Contains(t, document, field)
	}
	require.Len(t, document, 10, "namespace and ok, too")
	require.GreaterOrEqual(t, document["latencyMs"], 1.0)
}

func TestCheckOfAServerThatIsTooOld(t *testing.T) {
	t.Parallel()
	url := says(t, "6.2.0", "+OK")
	got := apptest.Call(t, url, "check").Ends(t, 1)
	require.Empty(t, got.Out)
	require.Contains(t, got.Err, "6.2.0")
	require.Equal(t, 1, strings.Count(got.Err, "\n"), got.Err)

	got = apptest.Call(t, url, "check", "--json").Ends(t, 1)
	var document struct {
		OK      bool
		Problem string
	}
	require.NoError(t, json.Unmarshal([]byte(got.Out), &document))
	require.False(t, document.OK)
	require.Contains(t, document.Problem, "6.2.0")
}

func TestCheckOfAServerThatTakesWrites(t *testing.T) {
	t.Parallel()
	got := apptest.Call(t, apptest.Server(t).URL(), "check", "--writable").Ends(t, 0)
	require.Equal(t, "The server takes writes.\n", got.Out)

	got = apptest.Call(t, says(t, "7.0.15", "-READONLY You can't write against a read only replica."), "check", "--writable")
	require.Equal(t, 69, got.Code)
	require.Empty(t, got.Out)
	require.Regexp(t, `^berth: refused by the server at .*the address leads to a replica.*READONLY.*\n$`, got.Err)
}

// says is a server that says its version, and answers each script the same.
func says(t *testing.T, version, script string) (url string) {
	t.Helper()
	return apptest.Answering(t, func(args []string) string {
		switch args[0] {
		case "HELLO", "CLUSTER":
			return ""
		case "EVALSHA", "EVAL":
			return script
		case "PING":
			return "+PONG"
		case "INFO":
			info := "redis_version:" + version + "\r\nredis_mode:standalone\r\nmaxmemory_policy:noeviction\r\n"
			return fmt.Sprintf("$%d\r\n%s", len(info), info)
		}
		return "+OK"
	})
}

func TestVersionNeedsNoServer(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"version"}, {"--version"}} {
		got := apptest.Call(t, apptest.Nobody, args...).Ends(t, 0)
		require.Regexp(t, `^berth version .*, go1\.\d+.*\n$`, got.Out)
		document := apptest.Read[struct {
			Version string `json:"version"`
			Go      string `json:"go"`
		}](t, apptest.Call(t, apptest.Nobody, append(args, "--json")...).Out)
		require.Regexp(t, "^berth version "+regexp.QuoteMeta(document.Version)+", (.*, )?"+regexp.QuoteMeta(document.Go)+"\n$", got.Out)
	}
}
