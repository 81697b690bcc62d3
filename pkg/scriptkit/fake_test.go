package scriptkit

import (
	"bufio"
	"context"
	"crypto/sha1"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// Answers of a fakeServer beside RESP.
const (
	hang = "hang" // says nothing on this connection any more
	drop = "drop" // closes this connection without an answer
)

// fakeServer answers what a test wants over connections in memory. It keeps
// virtual time.
type fakeServer struct {
	answer func(n int, command []string) string // n counts commands from 1
	hello  func() string                        // answers HELLO without arguments; nil: does not know it

	mu       sync.Mutex
	commands [][]string
	times    []time.Duration // since the server's start, of each command
	started  time.Time
	wg       sync.WaitGroup
}

func newFakeServer(t testing.TB, answer func(n int, command []string) string) *fakeServer {
	t.Helper()
	s := &fakeServer{answer: answer, started: time.Now()}
	t.Cleanup(s.wg.Wait)
	return s
}

// answers answers the texts one after the other, the last one ever after.
func answers(texts ...string) func(int, []string) string {
	return func(n int, _ []string) string { return texts[min(n, len(texts))-1] }
}

// client connects to the server. It is closed at the test's end.
func (s *fakeServer) client(t testing.TB) rueidis.Client {
	t.Helper()
	return connect(t, func() (net.Conn, error) {
		here, there := net.Pipe()
		s.wg.Go(func() { s.serve(there) })
		return here, nil
	})
}

// seen returns the names of the commands so far.
func (s *fakeServer) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for _, c := range s.commands {
		names = append(names, c[0])
	}
	return names
}

func (s *fakeServer) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	r := bufio.NewReader(conn)
	for {
		command, err := readCommand(r)
		if err != nil {
			return
		}
		text := "-ERR unknown command 'HELLO'\r\n" // so that RESP2 is spoken
		switch command[0] {
		case "HELLO":
			if len(command) == 1 && s.hello != nil {
				text = s.hello()
			}
		case "PING":
			text = "+PONG\r\n"
		default:
			s.mu.Lock()
			s.commands, s.times = append(s.commands, command), append(s.times, time.Since(s.started))
			n := len(s.commands)
			s.mu.Unlock()
			text = s.answer(n, command)
		}
		switch text {
		case drop:
			return
		case hang:
			_, _ = io.Copy(io.Discard, r)
			return
		}
		if _, err := io.WriteString(conn, text); err != nil {
			return
		}
	}
}

// readCommand reads an array of bulk strings.
func readCommand(r *bufio.Reader) ([]string, error) {
	n, err := readLength(r)
	if err != nil {
		return nil, err
	}
	command := make([]string, n)
	for i := range command {
		size, err := readLength(r)
		if err != nil {
			return nil, err
		}
		text := make([]byte, size+2)
		if _, err := io.ReadFull(r, text); err != nil {
			return nil, err
		}
		command[i] = string(text[:size])
	}
	return command, nil
}

func readLength(r *bufio.Reader) (int, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}

// table is a RESP array of bulk strings.
func table(elements ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(elements))
	for _, e := range elements {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(e), e)
	}
	return b.String()
}

// connect makes a client over connections in memory.
func connect(t testing.TB, dial func() (net.Conn, error)) rueidis.Client {
	t.Helper()
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress:       []string{"embedded"},
		ForceSingleClient: true,
		PipelineMultiplex: -1, // one connection
		DisableCache:      true,
		AlwaysRESP2:       true,
		ClientSetInfo:     rueidis.DisableClientSetInfo,
		DialCtxFn: func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
			return dial()
		},
	})
	if client == nil {
		require.NoError(t, err)
	}
	t.Cleanup(client.Close)
	return client
}

// embedded returns a client of a fresh embedded server, and the server.
func embedded(t testing.TB) (rueidis.Client, *miniredis.Miniredis) {
	t.Helper()
	m := miniredis.NewMiniRedis()
	t.Cleanup(m.Close)
	return connect(t, m.Dial), m
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// must has a call succeed, and in says in which test; it is what the call returned.
func must[V any](v V, err error) returned[V] { return returned[V]{v, err} }

type returned[V any] struct {
	v   V
	err error
}

func (r returned[V]) in(t testing.TB) V {
	t.Helper()
	require.NoError(t, r.err)
	return r.v
}

func second[V any](_ V, err error) error { return err }

// script is a script of that source, called s unless it has a name. It answers ok unless it names its answers.
func script(s Script, source string) *Script {
	if s.Name == "" {
		s.Name = "s"
	}
	if s.Returns == nil {
		s.Returns = []Return{{Status: "ok"}}
	}
	sum := sha1.Sum([]byte(source))
	s.SHA, s.File = hex.EncodeToString(sum[:]), &source
	return &s
}

// bubble runs a test in virtual time, beside others.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}

// bubbleOf runs one row of a table in a bubble of its own.
func bubbleOf(t *testing.T, row string, test func(t *testing.T)) {
	t.Helper()
	t.Run(row, func(t *testing.T) { bubble(t, test) })
}
