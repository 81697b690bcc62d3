package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/scripts/composed"
	"github.com/berth-go/berth/test/bench/contender"
)

// quiet is how to connect so that nothing is sent by itself.
func quiet(addr string) rueidis.ClientOption {
	option := contender.Option(addr)
	option.DisableCache = true
	option.Dialer.KeepAlive = time.Hour // the pings of rueidis
	return option
}

// conn is the connection of one node. It counts the answers, and it tells when a
// claim has joined a line.
type conn struct {
	rueidis.Client
	scripts    map[string]*scriptkit.Script // by their checksums and by their sources
	sent       atomic.Int64                 // how many scripts were sent
	answered   atomic.Int64                 // how many scripts were answered
	renewed    atomic.Int64                 // of how many names the scripts were that renew
	queued     chan struct{}                // one value for each claim that has joined a line
	subscribed chan struct{}                // one value once the node has subscribed

	mu  sync.Mutex
	ran map[string]int // guarded by mu: how often each script was called since the count began
}

// connect opens a connection for one node.
func (p *probe) connect() (*conn, error) {
	redis, err := rueidis.NewClient(quiet(p.addr))
	if err != nil {
		return nil, err
	}
	p.ends = append(p.ends, redis.Close)
	n := &conn{
		Client: redis, scripts: make(map[string]*scriptkit.Script), ran: make(map[string]int),
		queued: make(chan struct{}, 1000), subscribed: make(chan struct{}, 1),
	}
	for _, s := range composed.Library().Scripts() {
		n.scripts[s.SHA], n.scripts[s.Source()] = s, s
	}
	p.conns = append(p.conns, n)
	return n, nil
}

// Do runs a command, as the client below does.
func (n *conn) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	ran := n.send(cmd) // before Do, which gives cmd to others
	result := n.Client.Do(ctx, cmd)
	n.answer(ran, result)
	return result
}

// DoMulti runs commands, as the client below does.
func (n *conn) DoMulti(ctx context.Context, multi ...rueidis.Completed) []rueidis.RedisResult {
	ran := make([]called, len(multi))
	for i, cmd := range multi {
		ran[i] = n.send(cmd)
	}
	results := n.Client.DoMulti(ctx, multi...)
	for i, result := range results {
		n.answer(ran[i], result)
	}
	return results
}

// called is the script that a command runs, its name or else its checksum, "" for none, and of how many names.
type called struct {
	name  string
	names int64
}

// send counts a command that is about to be sent, and returns what it calls.
func (n *conn) send(cmd rueidis.Completed) called {
	words := cmd.Commands()
	if words[0] != "EVALSHA" && words[0] != "EVAL" {
		return called{}
	}
	of := called{words[1], 1} // by its checksum, where it is none of Berth's
	if script := n.scripts[words[1]]; script != nil {
		keys, _ := strconv.Atoi(words[2])
		of = called{script.Name, int64(keys / len(script.Keys))}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ran[of.name]++
	n.sent.Add(1)
	return of
}

// answer counts the answer to a command. One that says that the server does not know the script
// makes the command count as not sent: the library sends the source next.
func (n *conn) answer(ran called, result rueidis.RedisResult) {
	switch refusal, _ := rueidis.IsRedisErr(result.Error()); {
	case ran.name == "":
	case refusal != nil && refusal.IsNoScript():
		n.mu.Lock()
		defer n.mu.Unlock()
		n.ran[ran.name]--
		n.sent.Add(-1)
	default:
		n.answered.Add(1)
		if strings.HasSuffix(ran.name, "_renew") {
			n.renewed.Add(ran.names)
		}
	}
}

// Observe takes the events of Berth.
func (n *conn) Observe(e observe.Event) {
	switch e.Kind {
	case observe.Queued:
		n.queued <- struct{}{}
	case observe.Subscribed:
		select {
		case n.subscribed <- struct{}{}:
		default: // once more
		}
	}
}

// listens waits until the node, whose first claim waits, has subscribed, and has asked what
// became of those who waited before.
func (n *conn) listens(ctx context.Context) error {
	if n.renewed.Load() > 0 {
		return nil
	}
	if _, err := receive(ctx, n.subscribed); err != nil {
		return fmt.Errorf("wait for the subscription: %w", err)
	}
	return await(ctx, &n.renewed, 1)
}

// answers waits until so many scripts were answered since before, for a minute at most.
func (n *conn) answers(ctx context.Context, before, scripts int64) error {
	return await(ctx, &n.answered, before+scripts)
}

// await waits until a count has come to some number, for a minute at most.
func await(ctx context.Context, count *atomic.Int64, to int64) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for count.Load() < to {
		if err := pause(ctx, time.Millisecond); err != nil {
			return fmt.Errorf("wait for script %d, after %d: %w", to, count.Load(), err)
		}
	}
	return nil
}

// receive waits for a value, for a minute at most.
func receive[T any](ctx context.Context, from <-chan T) (v T, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	select {
	case v = <-from:
		return v, nil
	case <-ctx.Done():
		return v, ctx.Err()
	}
}

// pause waits for d, or returns the error of a ctx that ends before.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
