package integration

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// stub is a server that says of itself what a test wants to hear, in RESP 2.
type stub struct {
	listener net.Listener
	info     string // the answer to INFO

	mu    sync.Mutex
	conns []net.Conn // guarded by mu
	asked []string   // guarded by mu: all commands that came
	tasks sync.WaitGroup
}

// newStub starts a stub; it ends with the test.
func newStub(t *testing.T, info string) *stub {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &stub{listener: l, info: info}
	s.tasks.Go(s.accept)
	t.Cleanup(s.close)
	return s
}

func (s *stub) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns = append(s.conns, conn)
		s.tasks.Go(func() { s.serve(conn) })
		s.mu.Unlock()
	}
}

func (s *stub) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	in := bufio.NewReader(conn)
	for {
		words, err := readCommand(in)
		if err != nil {
			return
		}
		s.mu.Lock()
		s.asked = append(s.asked, strings.ToUpper(words[0]))
		s.mu.Unlock()
		if _, err := io.WriteString(conn, s.answer(words)); err != nil {
			return
		}
	}
}

func (s *stub) answer(words []string) string {
	switch strings.ToUpper(words[0]) {
	case "PING":
		return "+PONG\r\n"
	case "INFO":
		return fmt.Sprintf("$%d\r\n%s\r\n", len(s.info), s.info)
	case "CLIENT", "SELECT", "AUTH":
		return "+OK\r\n"
	}
	return fmt.Sprintf("-ERR unknown command `%s`\r\n", words[0])
}

// readCommand reads an array of bulk strings.
func readCommand(in *bufio.Reader) ([]string, error) {
	count, err := readLength(in, '*')
	if err != nil || count < 1 {
		return nil, fmt.Errorf("%d words: %w", count, err)
	}
	words := make([]string, count)
	for i := range words {
		size, err := readLength(in, '$')
		if err != nil {
			return nil, err
		}
		word := make([]byte, size+2)
		if _, err := io.ReadFull(in, word); err != nil {
			return nil, err
		}
		words[i] = string(word[:size])
	}
	return words, nil
}

func readLength(in *bufio.Reader, kind byte) (int, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return 0, err
	}
	if line[0] != kind {
		return 0, fmt.Errorf("%q is not RESP", line)
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}

// has says whether a command came.
func (s *stub) has(command string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, asked := range s.asked {
		if asked == command {
			return true
		}
	}
	return false
}

func (s *stub) close() {
	_ = s.listener.Close()
	s.mu.Lock()
	for _, conn := range s.conns {
		_ = conn.Close()
	}
	s.mu.Unlock()
	s.tasks.Wait()
}
