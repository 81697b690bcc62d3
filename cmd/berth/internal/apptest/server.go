package apptest

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

// Answering starts a server that answers each command, given in capitals with its arguments,
// with a text of the protocol, without its line end. If it returns "", the command is answered
// as by an old server, which does not know the command.
func Answering(t *testing.T, answer func(args []string) string) (url string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var served sync.WaitGroup
	var mu sync.Mutex
	var conns []net.Conn
	served.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, conn)
			mu.Unlock()
			served.Go(func() { serve(conn, answer) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		mu.Lock()
		for _, conn := range conns {
			_ = conn.Close()
		}
		mu.Unlock()
		served.Wait()
	})
	return "redis://" + listener.Addr().String()
}

// serve answers the commands of a connection.
func serve(conn net.Conn, answer func(args []string) string) {
	defer func() { _ = conn.Close() }()
	in := bufio.NewReader(conn)
	for {
		var count int
		if _, err := fmt.Fscanf(in, "*%d\r\n", &count); err != nil {
			return
		}
		args := make([]string, count)
		for i := range args {
			var size int
			if _, err := fmt.Fscanf(in, "$%d\r\n", &size); err != nil {
				return
			}
			text := make([]byte, size+2)
			if _, err := io.ReadFull(in, text); err != nil {
				return
			}
			args[i] = string(text[:size])
		}
		args[0] = strings.ToUpper(args[0])
		said := answer(args)
		if said == "" {
			said = "-ERR unknown command " + strconv.Quote(args[0])
		}
		if _, err := io.WriteString(conn, said+"\r\n"); err != nil {
			return
		}
	}
}

// Refusing starts a server that answers all that needs it with an error.
func Refusing(t *testing.T, text string) (url string) {
	t.Helper()
	return Answering(t, func(args []string) string {
		switch args[0] {
		case "HELLO", "CLIENT", "CLUSTER", "INFO":
			return ""
		case "PING":
			return "+PONG"
		}
		return "-" + text
	})
}
