package app

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

// closing bounds how long a command cleans up behind itself.
const closing = 5 * time.Second

// Times bound what a command waits for. Tests, which no pause of a busy machine is to
// fail, set longer ones.
var Times = struct {
	Call     time.Duration // how long a call is repeated, and an attempt may take, 0 for the defaults of the library
	Complete time.Duration // after how long a completion gives up, since the user has pressed a key and waits
	Look     time.Duration // how long a claim that got nothing looks who is in its way
	Demo     time.Duration // how long a demo may last, which takes a quarter of that where the machine is calm
}{Complete: time.Second, Look: 2 * time.Second, Demo: time.Minute}

// Connection is a server, and what a command has on it.
type Connection struct {
	Address   string
	Namespace string
	Redis     rueidis.Client
	node      *node.Node // nil until the first call of Node
	kept      bool       // it is not for the one who uses it to close it
}

// connect reaches the server within ctx. The caller closes the connection. A bad URL or
// namespace is an error of usage; all other errors have the exit code for a server that cannot
// be reached.
func (a *App) connect(ctx context.Context) (*Connection, error) {
	if a.kept != nil {
		return a.kept, nil
	}
	if err := keyspace.CheckNamespace(a.Namespace); err != nil {
		return nil, InFlags(err, "Namespace", a.source("namespace", namespaceVariable))
	}
	option, err := a.option()
	if err != nil {
		return nil, err
	}
	address := strings.Join(option.InitAddress, ", ")
	redis, err := dial(ctx, option)
	if err != nil {
		return nil, Unreachable(address, undialed(option, err))
	}
	return &Connection{Address: address, Namespace: a.Namespace, Redis: redis}, nil
}

// ConnectWithin is connect, which takes no longer than wait, unless that is 0.
func (a *App) ConnectWithin(ctx context.Context, wait time.Duration) (*Connection, error) {
	if wait == 0 {
		return a.connect(ctx)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, wait, fmt.Errorf("not connected within --wait %s", wait))
	defer cancel()
	return a.connect(ctx)
}

// Node is the process on the namespace. The first call makes it as cfg says, and it ends with the connection.
func (c *Connection) Node(cfg node.Config) (_ *node.Node, err error) {
	if c.node == nil {
		cfg.Namespace, cfg.CallTimeout, cfg.Retry.Within = c.Namespace, Times.Call, Times.Call
		c.node, err = node.New(c.Redis, cfg)
	}
	return c.node, err
}

// Settle gives back what is held, and waits until nothing of a claim is left on
// the way.
func (c *Connection) Settle(ctx context.Context) {
	if c.node != nil {
		_ = c.node.Close(ctx) // a command with a hold has released it and checked the result
	}
}

// Close settles, and ends the connection.
func (c *Connection) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	c.CloseWithin(ctx)
}

// CloseWithin is Close, which a server that does not answer can delay, until ctx
// ends.
func (c *Connection) CloseWithin(ctx context.Context) {
	_ = UnlessOver(ctx, func() error {
		c.Settle(ctx)
		c.Redis.Close()
		return nil
	})
}

// UnlessOver returns what f does, or why ctx has ended if that comes first: f is
// then left behind for the end of the program.
func UnlessOver(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// WithServer connects, and calls f. An error of f is the server's error, unless it has an exit
// code of its own.
func (a *App) WithServer(ctx context.Context, f func(context.Context, *Connection) error) error {
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	return c.with(ctx, f)
}

// with calls f, and ends the connection.
func (c *Connection) with(ctx context.Context, f func(context.Context, *Connection) error) error {
	if !c.kept {
		defer c.Close()
	}
	err := f(ctx, c)
	if err == nil || decided(err) {
		return err
	}
	return Unreachable(c.Address, err)
}

// WithNode connects, and calls f with a node that is as cfg says. Where no server is reached, it calls f with a ctx
// that has ended, for what f asks that cannot be.
func (a *App) WithNode(ctx context.Context, cfg node.Config, f func(context.Context, *node.Node) error) error {
	return a.acting(ctx, cfg, func(ctx context.Context, n *node.Node, _ *inspect.Reader) error { return f(ctx, n) })
}

// acting is WithNode, with what reads names of all kinds.
func (a *App) acting(ctx context.Context, cfg node.Config, f func(context.Context, *node.Node, *inspect.Reader) error) error {
	asks := func(ctx context.Context, c *Connection) error {
		n, err := c.Node(cfg)
		if err != nil {
			return err
		}
		read, err := c.Reader()
		if err != nil {
			return err
		}
		return f(ctx, n, read)
	}
	c, err := a.connect(ctx)
	if Unavailable(err) {
		return cmp.Or(a.Refused(asks), err)
	} else if err != nil {
		return err
	}
	return c.with(ctx, asks)
}

// Refused is what the library refuses of what f asks, nil for nothing. The library looks at that before it sends anything:
// it needs a server to be made, which need not be the one that is meant, and is not asked, as ctx has ended.
func (a *App) Refused(f func(context.Context, *Connection) error) error {
	redis, err := unasked()
	if err != nil {
		return nil
	}
	over, end := context.WithCancel(context.Background())
	end()
	if err = (&Connection{Namespace: a.Namespace, Redis: redis}).with(over, f); errors.Is(err, berth.ErrInvalidConfig) {
		return err
	}
	return nil
}

// unasked returns a client of no server. Its connection ends in this process, where each question is answered as an old server
// answers the greeting, so that the client can be made.
func unasked() (rueidis.Client, error) {
	return rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{"nowhere:0"}, ForceSingleClient: true,
		AlwaysRESP2: true, DisableCache: true, ClientSetInfo: rueidis.DisableClientSetInfo,
		DialCtxFn: func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
			near, far := net.Pipe()
			go func() {
				defer func() { _ = far.Close() }()
				for question := make([]byte, 1<<10); ; {
					if _, err := far.Read(question); err != nil {
						return
					}
					if _, err := io.WriteString(far, "-ERR unknown command 'HELLO'\r\n"); err != nil {
						return
					}
				}
			}()
			return near, nil
		},
	})
}

// dial is rueidis.NewClient, which knows no ctx: where ctx ends first, it is
// left behind for the end of the program.
func dial(ctx context.Context, option rueidis.ClientOption) (rueidis.Client, error) {
	type result struct {
		client rueidis.Client
		err    error
	}
	dialed := make(chan result, 1)
	go func() {
		client, err := rueidis.NewClient(option)
		dialed <- result{client, err}
	}()
	select {
	case r := <-dialed:
		return r.client, r.err
	case <-ctx.Done():
		go func() {
			if r := <-dialed; r.err == nil {
				r.client.Close()
			}
		}()
		return nil, context.Cause(ctx)
	}
}

// Reader reads the namespace.
func (c *Connection) Reader() (*inspect.Reader, error) {
	return inspect.New(c.Redis, inspect.Config{Namespace: c.Namespace, CallTimeout: Times.Call, Retry: berth.Retry{Within: Times.Call}})
}

// Looking connects, and calls f with a node and with what reads names of all kinds.
func (a *App) Looking(ctx context.Context, f func(context.Context, *node.Node, *inspect.Reader) error) error {
	return a.acting(ctx, node.Config{}, f)
}

// WithReader connects, and calls f with what reads names of all kinds.
func (a *App) WithReader(ctx context.Context, f func(context.Context, *inspect.Reader) error) error {
	return a.WithServer(ctx, func(ctx context.Context, c *Connection) error {
		read, err := c.Reader()
		if err != nil {
			return err
		}
		return f(ctx, read)
	})
}
