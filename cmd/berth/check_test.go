package main

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
)

func TestCheckOfAServerThatWillDo(t *testing.T) {
	t.Parallel()
	got := call(t, server(t).URL(), "check")
	require.Zero(t, got.code, got.err)
	require.Regexp(t, `^address   127\.0\.0\.1:\d+\n`, got.out)
	require.Regexp(t, `\nlatency   [\d.]+(µs|ms)\n`, got.out)
	require.Contains(t, got.out, "\nwarning: ", "the embedded server tells little of itself")
	require.True(t, strings.HasSuffix(got.out, "The server will do.\n"), got.out)
}

func TestCheckInJSON(t *testing.T) {
	t.Parallel()
	got := call(t, server(t).URL(), "check", "--json")
	require.Zero(t, got.code, got.err)
	var document map[string]any
	require.NoError(t, json.Unmarshal([]byte(got.out), &document))
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
	got := call(t, url, "check")
	require.Equal(t, 1, got.code)
	require.Empty(t, got.out)
	require.Contains(t, got.err, "6.2.0")
	require.Equal(t, 1, strings.Count(got.err, "\n"), got.err)

	got = call(t, url, "check", "--json")
	require.Equal(t, 1, got.code)
	var document struct {
		OK      bool
		Problem string
	}
	require.NoError(t, json.Unmarshal([]byte(got.out), &document))
	require.False(t, document.OK)
	require.Contains(t, document.Problem, "6.2.0")
}

// oldServer answers as a Redis 6.2 does, as far as check asks.
func oldServer(t *testing.T) (url string) {
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
				answerAll(conn)
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		serving.Wait() // the clients have ended
	})
	return "redis://" + listener.Addr().String()
}

func answerAll(conn io.ReadWriter) {
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
		case "PING":
			answer = "+PONG\r\n"
		case "INFO":
			info := "redis_version:6.2.0\r\nredis_mode:standalone\r\nmaxmemory_policy:noeviction\r\n"
			answer = fmt.Sprintf("$%d\r\n%s\r\n", len(info), info)
		}
		if _, err := io.WriteString(conn, answer); err != nil {
			return
		}
	}
}
