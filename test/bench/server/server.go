// Package server starts the redis-server that everything is measured on.
package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// Start starts redis-server from PATH on a free port of the loopback, with no persistence,
// and returns its address when it answers. Stop ends it; so does the end of ctx.
func Start(ctx context.Context) (addr string, stop func() error, err error) {
	addr, _, stop, err = Under(ctx)
	return addr, stop, err
}

// Under starts redis-server by another command, as valgrind is. The command line of
// redis-server follows that command, which has to run it in the same process: pid is the id
// of both. Without a command it is Start.
func Under(ctx context.Context, command ...string) (addr string, pid int, stop func() error, err error) {
	for range 10 { // another program may take the port before the server does
		addr, pid, stop, err = once(ctx, command)
		if !errors.Is(err, errEnded) {
			break
		}
	}
	return addr, pid, stop, err
}

// errEnded says that the server has ended by itself.
var errEnded = errors.New("it has ended")

// once starts it on some port.
func once(ctx context.Context, command []string) (addr string, pid int, stop func() error, err error) {
	port, err := freePort(ctx)
	if err != nil {
		return "", 0, nil, err
	}
	command = append(slices.Clone(command), "redis-server", "--port", strconv.Itoa(port), "--bind", "127.0.0.1",
		"--save", "", "--appendonly", "no", "--loglevel", "warning")
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	if err := cmd.Start(); err != nil {
		return "", 0, nil, fmt.Errorf("start %s: %w", command[0], err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // says that it was killed, mostly
		close(ended)
	}()
	stop = func() error {
		err := cmd.Process.Kill()
		<-ended
		if errors.Is(err, os.ErrProcessDone) {
			return nil
		}
		return err
	}
	addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	if err := answers(ctx, addr, cmd.Process.Pid, ended); err != nil {
		return "", 0, nil, errors.Join(err, stop())
	}
	return addr, cmd.Process.Pid, stop, nil
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

// answers waits until the server of that process does, however long it takes. Another one may
// have taken the port in between.
func answers(ctx context.Context, addr string, pid int, ended <-chan struct{}) error {
	for {
		client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}})
		if err == nil {
			var text string
			text, err = client.Do(ctx, client.B().Info().Section("server").Build()).ToString()
			client.Close()
			if err == nil && strings.Contains(text, fmt.Sprintf("process_id:%d\r", pid)) {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("redis-server at %s does not answer: %w", addr, errors.Join(ctx.Err(), err))
		case <-ended:
			return fmt.Errorf("redis-server at %s: %w", addr, errors.Join(errEnded, err))
		case <-time.After(20 * time.Millisecond):
		}
	}
}
