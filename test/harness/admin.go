package harness

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/internal/testkit/link"
)

const (
	// settleLimit bounds how long a topology may take until it is as it should be.
	settleLimit = 3 * time.Minute
	// askLimit bounds one command of ours to one server.
	askLimit = 5 * time.Second
)

// ask sends one command to the server at addr, on a connection of its own, to that
// server alone and once.
func ask(ctx context.Context, addr string, command ...string) rueidis.RedisResult {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	option := rueidis.ClientOption{
		InitAddress:       []string{addr},
		Dialer:            net.Dialer{Timeout: askLimit},
		ConnWriteTimeout:  askLimit,
		DisableCache:      true,
		DisableRetry:      true,
		ForceSingleClient: true,
		AlwaysRESP2:       true, // rueidis leaves the kind of a RESP3 text in it
	}
	link.Slim(&option)
	option.RingScaleEachConn = 1 // for one command
	client, err := rueidis.NewClient(option)
	if err != nil {
		return rueidis.NewErrorResult(err)
	}
	defer client.Close()
	return client.Do(ctx, client.B().Arbitrary(command...).Build())
}

// order sends a command that is answered with OK.
func order(ctx context.Context, s *Server, command ...string) error {
	if err := ask(ctx, s.Addr, command...).Error(); err != nil {
		return fmt.Errorf("%s at %s: %w", strings.Join(command, " "), s.Addr, err)
	}
	return nil
}

// report asks for a text of lines "field:value", as INFO is.
func report(ctx context.Context, s *Server, command ...string) (map[string]string, error) {
	text, err := ask(ctx, s.Addr, command...).ToString()
	if err != nil {
		return nil, fmt.Errorf("%s at %s: %w", strings.Join(command, " "), s.Addr, err)
	}
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if field, value, found := strings.Cut(strings.TrimSpace(line), ":"); found {
			fields[field] = value
		}
	}
	return fields, nil
}

// until tries again until there is no error, for settleLimit at most.
func until(t testing.TB, what string, try func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), settleLimit)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		err := try(ctx)
		if err == nil {
			return
		}
		if last == nil || ctx.Err() == nil && !errors.Is(err, context.DeadlineExceeded) { // an end says nothing
			last = err
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not within %v: %v", what, settleLimit, last)
		case <-tick.C:
		}
	}
}

// takesWrites has the server write a key into the slot of the given one, and
// nothing is left of it.
func takesWrites(ctx context.Context, s *Server, key string) error {
	const script = `redis.call("SET", KEYS[1], "") return redis.call("DEL", KEYS[1])`
	return order(ctx, s, "EVAL", script, "1", "{"+hashTag(key)+"}:harness")
}

// hashTag is the part of a key that says in which slot it is.
func hashTag(key string) string {
	if _, rest, found := strings.Cut(key, "{"); found {
		if tag, _, found := strings.Cut(rest, "}"); found && tag != "" {
			return tag
		}
	}
	return key
}

// at returns the server that listens on the address.
func (d *Deployment) at(addr string) (*Server, error) {
	for _, s := range d.servers {
		if s.Addr == addr {
			return s, nil
		}
	}
	return nil, fmt.Errorf("no server of the %s has the address %s", d.Name, addr)
}

// running returns the servers that are not killed.
func (d *Deployment) running() []*Server {
	var up []*Server
	for _, s := range d.servers {
		if s.PID() != 0 {
			up = append(up, s)
		}
	}
	return up
}

// inSync says why a running server that is not one of the masters is no replica of
// one of them, or has not all that its master had.
func (d *Deployment) inSync(ctx context.Context, masters []*Server) error {
	had := map[string]int64{}
	for _, s := range masters {
		info, err := report(ctx, s, "INFO", "replication")
		if err != nil {
			return err
		}
		if info["role"] != "master" {
			return fmt.Errorf("%s is a %s", s.Addr, info["role"])
		}
		if had[s.Addr], err = strconv.ParseInt(info["master_repl_offset"], 10, 64); err != nil {
			return err
		}
	}
	for _, s := range d.running() {
		if _, master := had[s.Addr]; master {
			continue
		}
		if err := follows(ctx, s, had); err != nil {
			return err
		}
	}
	return nil
}

func follows(ctx context.Context, s *Server, had map[string]int64) error {
	info, err := report(ctx, s, "INFO", "replication")
	if err != nil {
		return err
	}
	offset, known := had[net.JoinHostPort(info["master_host"], info["master_port"])]
	if info["role"] != "slave" || !known {
		return fmt.Errorf("%s follows no master", s.Addr)
	}
	got, err := strconv.ParseInt(info["slave_repl_offset"], 10, 64)
	if err != nil {
		return err
	}
	if info["master_link_status"] != "up" || got < offset {
		return fmt.Errorf("%s is not in sync", s.Addr)
	}
	return nil
}

// revive starts what is killed.
func (d *Deployment) revive(t testing.TB, prepare func(*process) error) {
	t.Helper()
	for _, s := range d.servers {
		if s.PID() != 0 {
			continue
		}
		s.must(t, "start", func(e engine) error {
			p, ok := e.(*process)
			if !ok {
				return errors.New("it is no process")
			}
			if err := prepare(p); err != nil {
				return err
			}
			return p.start()
		})
	}
}
