package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRepliesComeLate(t *testing.T) {
	t.Parallel()
	p := Proxy(t, Start(t))
	client := p.Client(t)
	require.NoError(t, set(t, client, "k", "v"))

	for _, d := range []time.Duration{60 * time.Millisecond, 150 * time.Millisecond} {
		p.AddLatency(d)
		require.GreaterOrEqual(t, took(t, client), d)
	}
	p.AddRequestLatency(100 * time.Millisecond)
	require.GreaterOrEqual(t, took(t, client), 250*time.Millisecond)

	p.Heal(t)
	for healed := time.Now(); took(t, client) >= 60*time.Millisecond; {
		require.Less(t, time.Since(healed), settleLimit, "none comes sooner")
	}
}

func TestDroppedRepliesAreThoseOfCommandsThatRanAndABlackHoleLosesRequestsToo(t *testing.T) {
	t.Parallel()
	s := Start(t)
	p := Proxy(t, s)
	client, direct := p.Client(t, oneConnection), s.Client(t)
	heals := func() {
		t.Helper()
		p.Heal(t)
		require.Eventually(t, func() bool { return incr(t, client) == nil }, settleLimit, 10*time.Millisecond)
		require.NoError(t, direct.Do(within(t, settleLimit), direct.B().Del().Key("n").Build()).Error())
	}
	heals() // opens the connection

	p.DropReplies()
	ctx, leave := context.WithCancel(t.Context()) // one with a deadline would not be looked at while a reply is read
	answered := make(chan error, 1)
	go func() { answered <- client.Do(ctx, client.B().Incr().Key("n").Build()).Error() }()
	require.Eventually(t, func() bool {
		n, err := get(t, direct, "n")
		return err == nil && n == "1"
	}, settleLimit, 10*time.Millisecond, "the request did not reach the server")
	require.Eventually(t, p.lostReplies, settleLimit, time.Millisecond, "the reply did not reach the proxy")
	leave()
	require.ErrorIs(t, <-answered, context.Canceled)
	heals()

	p.BlackHole()
	require.ErrorIs(t, incr(t, client), context.DeadlineExceeded)
	_, err := get(t, direct, "n")
	require.True(t, rueidis.IsRedisNil(err), "the request reached the server: %v", err)
	heals()
}

func TestACutRefusesConnectionsUntilItHealsAndAResetDoesNot(t *testing.T) {
	t.Parallel()
	p := Proxy(t, Start(t))
	conn := dial(t, p.Addr)
	p.Reset()
	requireBroken(t, conn)
	conn = dial(t, p.Addr)
	p.Cut()
	requireBroken(t, conn)
	_, err := net.Dial("tcp", p.Addr)
	require.Error(t, err)
	p.Heal(t)
	dial(t, p.Addr)
}

func TestForgottenConnectionsAreDeadAndNewOnesWork(t *testing.T) {
	t.Parallel()
	p := Proxy(t, Start(t))
	conn := dial(t, p.Addr)

	require.Equal(t, 1, p.Forget())
	_, err := io.WriteString(conn, "PING\r\n")
	require.NoError(t, err)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
	_, err = conn.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)

	again := dial(t, p.Addr)
	p.Heal(t)
	require.NoError(t, conn.SetReadDeadline(time.Time{}))
	requireBroken(t, conn)
	_, err = io.WriteString(again, "PING\r\n")
	require.NoError(t, err)
	require.Equal(t, "+PONG\r\n", read(t, again, len("+PONG\r\n")))
}

// A client that meets a byte out of place panics, and takes all tests of its process
// along.
func TestNoByteIsLostOrOutOfPlaceWhenADelayChanges(t *testing.T) {
	t.Parallel()
	const asked = 3000
	p := Proxy(t, Start(t))
	conn := dial(t, p.Addr)
	var sent, want strings.Builder
	for i := range asked {
		text := strings.Repeat(strconv.Itoa(i)+" ", 50)
		fmt.Fprintf(&sent, "*2\r\n$4\r\nECHO\r\n$%d\r\n%s\r\n", len(text), text)
		fmt.Fprintf(&want, "$%d\r\n%s\r\n", len(text), text)
	}
	require.NoError(t, conn.SetDeadline(time.Now().Add(settleLimit)))
	var tasks sync.WaitGroup
	tasks.Go(func() {
		_, err := io.WriteString(conn, sent.String())
		assert.NoError(t, err)
	})
	tasks.Go(func() {
		for i := range 20 {
			p.AddLatency(time.Duration(i%3) * 20 * time.Millisecond)
			p.AddRequestLatency(time.Duration(i%2) * 20 * time.Millisecond)
			<-time.After(5 * time.Millisecond)
		}
		p.Heal(t)
	})
	defer tasks.Wait()
	got := read(t, conn, want.Len())
	if want.String() != got {
		t.Fatal("the replies are not those of the requests")
	}
}

// lostReplies says whether a connection has lost one.
func (p *Proxied) lostReplies() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k := range p.open {
		if k.lost[replies] {
			return true
		}
	}
	return false
}

// oneConnection keeps the client from sending a command over a connection that
// is still to be made, where the replies to its greeting are lost first.
func oneConnection(o *rueidis.ClientOption) {
	o.DisableRetry = true
	o.PipelineMultiplex = -1
}

// took is how long one command needs.
func took(t *testing.T, c rueidis.Client) time.Duration {
	t.Helper()
	begin := time.Now()
	require.NoError(t, c.Do(within(t, settleLimit), c.B().Ping().Build()).Error())
	return time.Since(begin)
}

func incr(t *testing.T, c rueidis.Client) error {
	t.Helper()
	return c.Do(within(t, 300*time.Millisecond), c.B().Incr().Key("n").Build()).Error()
}

// dial opens a connection and makes sure that a server answers on it.
func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(settleLimit)))
	_, err = io.WriteString(conn, "PING\r\n")
	require.NoError(t, err)
	require.Equal(t, "+PONG\r\n", read(t, conn, len("+PONG\r\n")))
	return conn
}

// read returns the next n bytes.
func read(t *testing.T, conn net.Conn, n int) string {
	t.Helper()
	text := make([]byte, n)
	_, err := io.ReadFull(conn, text)
	require.NoError(t, err)
	return string(text)
}

func requireBroken(t *testing.T, conn net.Conn) {
	t.Helper()
	_, err := conn.Read(make([]byte, 1))
	require.Error(t, err)
	var timeout net.Error
	require.False(t, errors.As(err, &timeout) && timeout.Timeout(), "the connection is still open")
}
