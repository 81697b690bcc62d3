// Package server starts the redis-server that everything is measured on.
package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

// Start starts redis-server from PATH on a free port of the loopback, with no persistence,
// and returns its address when it answers. Stop ends it; so does the end of ctx.
func Start(ctx context.Context) (addr string, stop func() error, err error) {
	port, err := freePort(ctx)
	if err != nil {
		return "", nil, err
	}
	cmd := exec.CommandContext(ctx, "redis-server", "--port", strconv.Itoa(port), "--bind", "127.0.0.1",
		"--save", "", "--appendonly", "no", "--loglevel", "warning")
	if err := cmd.Start(); err != nil {
		return "", nil, fmt.Errorf("start redis-server: %w", err)
	}
	stop = func() error {
		err := cmd.Process.Kill()
		_ = cmd.Wait() // says that it was killed
		if errors.Is(err, os.ErrProcessDone) {
			return nil
		}
		return err
	}
	addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	if err := answers(ctx, addr); err != nil {
		return "", nil, errors.Join(err, stop())
	}
	return addr, stop, nil
}

func freePort(ctx context.Context) (int, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}

// answers waits until the server does, for at most 10 s.
func answers(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for {
		client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}})
		if err == nil {
			err = client.Do(ctx, client.B().Ping().Build()).Error()
			client.Close()
		}
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("redis-server at %s does not answer: %w", addr, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
