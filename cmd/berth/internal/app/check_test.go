package app_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/cmd/berth/internal/apptest"
)

func TestCheckOfAServerThatWillDo(t *testing.T) {
	t.Parallel()
	got := apptest.Call(t, apptest.Server(t).URL(), "check")
	require.Zero(t, got.Code, got.Err)
	require.Regexp(t, `^address   127\.0\.0\.1:\d+\n`, got.Out)
	require.Regexp(t, `\nlatency   [\d.]+(µs|ms)\n`, got.Out)
	require.Contains(t, got.Out, "\nwarning: ", "the embedded server tells little of itself")
	require.True(t, strings.HasSuffix(got.Out, "The server will do.\n"), got.Out)
}

func TestCheckInJSON(t *testing.T) {
	t.Parallel()
	got := apptest.Call(t, apptest.Server(t).URL(), "check", "--json")
	require.Zero(t, got.Code, got.Err)
	var document map[string]any
	require.NoError(t, json.Unmarshal([]byte(got.Out), &document))
	require.Equal(t, true, document["ok"])
	require.NotEmpty(t, document["warnings"])
	for _, field := range []string{"problem", "address", "server", "version", "mode", "eviction", "latencyMs"} {
		require.Contains(t, document, field)
	}
	require.Len(t, document, 9)
}

func TestCheckOfAServerThatIsTooOld(t *testing.T) {
	t.Parallel()
	url := oldServer(t)
	got := apptest.Call(t, url, "check")
	require.Equal(t, 1, got.Code)
	require.Empty(t, got.Out)
	require.Contains(t, got.Err, "6.2.0")
	require.Equal(t, 1, strings.Count(got.Err, "\n"), got.Err)

	got = apptest.Call(t, url, "check", "--json")
	require.Equal(t, 1, got.Code)
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
	got := apptest.Call(t, apptest.Server(t).URL(), "check", "--writable")
	require.Zero(t, got.Code, got.Err)
	require.Equal(t, "The server takes writes.\n", got.Out)

	got = apptest.Call(t, replica(t), "check", "--writable")
	require.Equal(t, 69, got.Code)
	require.Empty(t, got.Out)
	require.Regexp(t, `^berth: refused by the server at .*the address leads to a replica.*READONLY.*\n$`, got.Err)
}

// oldServer answers as a Redis 6.2 does, as far as check asks.
func oldServer(t *testing.T) (url string) {
	t.Helper()
	return says(t, "6.2.0", "+OK")
}

// replica answers as the replica of a Redis 7 does.
func replica(t *testing.T) (url string) {
	t.Helper()
	return says(t, "7.0.15", "-READONLY You can't write against a read only replica.")
}

// says is a server that says its version, and answers each script the same.
func says(t *testing.T, version, script string) (url string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer func() { _ = conn.Close() }()
				answerAll(conn, version, script)
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		serving.Wait() // the clients have ended
	})
	return "redis://" + listener.Addr().String()
}

func answerAll(conn io.ReadWriter, version, script string) {
	in := bufio.NewReader(conn)
	for {
		var words int
		if _, err := fmt.Fscanf(in, "*%d\r\n", &words); err != nil {
			return
		}
		command := make([]string, words)
		for i := range command {
			var size int
			if _, err := fmt.Fscanf(in, "$%d\r\n", &size); err != nil {
				return
			}
			text := make([]byte, size+2)
			if _, err := io.ReadFull(in, text); err != nil {
				return
			}
			command[i] = strings.ToUpper(string(text[:size]))
		}
		answer := "+OK\r\n"
		switch command[0] {
		case "HELLO":
			answer = "-ERR unknown command `HELLO`\r\n"
		case "CLUSTER":
			answer = "-ERR This instance has cluster support disabled\r\n"
		case "EVALSHA", "EVAL":
			answer = script + "\r\n"
		case "PING":
			answer = "+PONG\r\n"
		case "INFO":
			info := "redis_version:" + version + "\r\nredis_mode:standalone\r\nmaxmemory_policy:noeviction\r\n"
			answer = fmt.Sprintf("$%d\r\n%s\r\n", len(info), info)
		}
		if _, err := io.WriteString(conn, answer); err != nil {
			return
		}
	}
}
