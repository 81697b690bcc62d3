package embedded

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"github.com/alicebob/miniredis/v2"
	"github.com/berth-go/berth"
	"github.com/redis/rueidis"
)

// Server is an embedded Redis, empty when it starts. A Server is safe for concurrent use.
type Server struct {
	mini *miniredis.Miniredis
	addr string // host:port; a placeholder without a listener
	url  string // "" without a listener

	mu     sync.Mutex // held while dialing and closing
	closed bool       // guarded by mu
}

// errClosed is the error of a connection to a closed server.
var errClosed = fmt.Errorf("embedded: server: %w", net.ErrClosed)

// Start starts a server that does not listen: only [Server.Client] reaches it. The caller must
// close the server.
func Start() (*Server, error) {
	s := &Server{mini: miniredis.NewMiniRedis(), addr: "embedded:0"}
	s.mini.ClockTTL(true)
	conn, err := s.mini.Dial() // starts it, without a listener
	if err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	s.mini.Server().SetPreHook(refuse)
	if err := conn.Close(); err != nil {
		s.Close()
		return nil, fmt.Errorf("embedded: %w", err)
	}
	return s, nil
}

// StartListening starts a server that child processes can also reach, by its [Server.URL]. The
// address must be a loopback IP or localhost with a port, such as "127.0.0.1:0" for any free
// port; any other address is an error that matches berth.ErrInvalidConfig. There is no
// password: every user of this machine can reach the server. The caller must close the server.
func StartListening(addr string) (*Server, error) {
	loopback, err := parseLoopback(addr)
	if err != nil {
		return nil, err
	}
	s := &Server{mini: miniredis.NewMiniRedis()}
	s.mini.ClockTTL(true)
	if err := s.mini.StartAddr(loopback.String()); err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	s.mini.Server().SetPreHook(refuse)
	s.addr = s.mini.Addr()
	// Without RESP3 rueidis wants to be told that there is no cache.
	s.url = "redis://" + s.addr + "?client_cache=0"
	return s, nil
}

// parseLoopback refuses every address that another machine could reach.
func parseLoopback(addr string) (netip.AddrPort, error) {
	host, port, err := net.SplitHostPort(addr)
	if host == "localhost" {
		host = "127.0.0.1"
	}
	var parsed netip.AddrPort
	if err == nil {
		parsed, err = netip.ParseAddrPort(net.JoinHostPort(host, port))
	}
	if err != nil || !parsed.Addr().IsLoopback() {
		return netip.AddrPort{}, berth.Invalid("addr",
			"must be a loopback address with a port, such as 127.0.0.1:0, is %q", addr)
	}
	return parsed, nil
}

// Client returns a client of the server, which connects in memory, even to a listening server.
// The caller must close the client before the server.
//
// Client applies each change to the client's options, in order. A change may wrap DialCtxFn,
// for instance to break connections on purpose.
//
// Client returns the result of rueidis.NewClient; after Close an error that matches
// net.ErrClosed.
func (s *Server) Client(changes ...func(*rueidis.ClientOption)) (rueidis.Client, error) {
	option := rueidis.ClientOption{
		InitAddress:  []string{s.addr},
		DisableCache: true, // it needs RESP3
		// The cluster client, which rueidis tries otherwise, leaves a goroutine
		// that sleeps up to a second whenever a connection breaks or is
		// refused. A bubble cannot end with that.
		ForceSingleClient: true,
		// A test has many connections, and each carries little: rueidis makes a megabyte of buffers for each.
		ReadBufferEachConn: 16 << 10, WriteBufferEachConn: 16 << 10,
		DialCtxFn: func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
			return s.dial()
		},
	}
	for _, change := range changes {
		change(&option)
	}
	return rueidis.NewClient(option)
}

// dial connects in memory, unless the server is closed: miniredis would start again
// when a client that still reconnects dials it after its end.
func (s *Server) dial() (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	return s.mini.Dial()
}

// URL returns the address for child processes, in the form of rueidis.ParseURL:
// redis://127.0.0.1:port?client_cache=0. URL returns "" if the server does not listen.
func (s *Server) URL() string { return s.url }

// Close ends the server and all its connections, and drops all data. Close may be called more
// than once.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	s.mini.Close()
}
