package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/test/bench/contender"
)

// quiet is how to connect so that the client sends nothing by itself.
func quiet(addr string) rueidis.ClientOption {
	option := contender.Option(addr)
	option.DisableCache = true
	option.Dialer.KeepAlive = time.Hour // the client's pings
	return option
}

// node is the connection of one client of Berth. It counts the answers, and it tells when a
// claim has joined a line.
type node struct {
	rueidis.Client
	answered atomic.Int64  // how many scripts were answered
	queued   chan struct{} // one value for each claim that has joined a line
}

// node opens a connection for one client of Berth.
func (p *probe) node() (*node, error) {
	redis, err := rueidis.NewClient(quiet(p.addr))
	if err != nil {
		return nil, err
	}
	p.ends = append(p.ends, redis.Close)
	n := &node{Client: redis, queued: make(chan struct{}, 1000)}
	p.nodes = append(p.nodes, n)
	return n, nil
}

// Do runs a command, as the client below does.
func (n *node) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	scripts := count(cmd) // before Do, which gives cmd to others
	result := n.Client.Do(ctx, cmd)
	n.answered.Add(scripts)
	return result
}

// DoMulti runs commands, as the client below does.
func (n *node) DoMulti(ctx context.Context, multi ...rueidis.Completed) []rueidis.RedisResult {
	scripts := count(multi...)
	results := n.Client.DoMulti(ctx, multi...)
	n.answered.Add(scripts)
	return results
}

// count returns how many of the commands run scripts.
func count(cmds ...rueidis.Completed) (scripts int64) {
	for _, cmd := range cmds {
		if cmd.Commands()[0] == "EVALSHA" {
			scripts++
		}
	}
	return scripts
}

// Observe takes the events of Berth.
func (n *node) Observe(e observe.Event) {
	if e.Kind == observe.Queued {
		n.queued <- struct{}{}
	}
}

// answers waits until so many scripts were answered since before, for a minute at most.
func (n *node) answers(ctx context.Context, before, scripts int64) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for n.answered.Load() < before+scripts {
		if err := pause(ctx, time.Millisecond); err != nil {
			return fmt.Errorf("wait for %d scripts, of which %d came: %w", scripts, n.answered.Load()-before, err)
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
