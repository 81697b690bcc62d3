package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/test/bench/report"
	"github.com/berth-go/berth/test/bench/row"
	"github.com/berth-go/berth/test/bench/server"
)

// machine is a redis-server whose instructions are counted.
type machine struct {
	addr   string
	redis  rueidis.Client // for calls that are no part of a step
	counts counter
	closes []func() error
}

// counter counts instructions.
type counter interface {
	zero(ctx context.Context) error
	// total is what was counted since zero.
	total(ctx context.Context) (float64, error)
}

// startMachine starts redis-server under callgrind.
func startMachine(ctx context.Context) (*machine, error) {
	dir, err := os.MkdirTemp("", "berth-instructions-")
	if err != nil {
		return nil, err
	}
	remove := func() error { return os.RemoveAll(dir) }
	addr, pid, stop, err := server.Under(ctx, "valgrind", "--quiet", "--tool=callgrind",
		"--callgrind-out-file="+filepath.Join(dir, dumps))
	if err != nil {
		return nil, errors.Join(err, remove())
	}
	return newMachine(addr, callgrind{pid: pid, dir: dir}, remove, stop)
}

// newMachine connects to a server. The funcs in closes end it, the last one first.
func newMachine(addr string, counts counter, closes ...func() error) (*machine, error) {
	m := &machine{addr: addr, counts: counts, closes: closes}
	redis, err := rueidis.NewClient(quiet(addr))
	if err != nil {
		return nil, errors.Join(err, m.close())
	}
	m.redis = redis
	m.closes = append(m.closes, func() error { redis.Close(); return nil })
	return m, nil
}

func (m *machine) close() error {
	var errs []error
	for len(m.closes) > 0 {
		last := len(m.closes) - 1
		errs = append(errs, m.closes[last]())
		m.closes = m.closes[:last]
	}
	return errors.Join(errs...)
}

// empty removes all keys.
func (m *machine) empty(ctx context.Context) error {
	return m.redis.Do(ctx, m.redis.B().Flushall().Build()).Error()
}

// forget removes all keys and scripts, so that a step does not depend on those before it:
// the more scripts are loaded, the more the collector of Lua has to go through.
func (m *machine) forget(ctx context.Context) error {
	flush := m.redis.B().ScriptFlush().Sync().Build()
	return errors.Join(m.empty(ctx), m.redis.Do(ctx, flush).Error())
}

// name is that of the server, with its version and the platform.
func (m *machine) name(ctx context.Context) (string, error) {
	machine, err := report.ThisMachine(ctx, m.redis)
	return machine.Server + ", " + machine.OS, err
}

// count returns how many instructions the server ran while f did, and how many scripts.
func (m *machine) count(ctx context.Context, f func() error) (instructions, scripts float64, err error) {
	env := row.NewEnv(m.redis, m.addr, row.Scale{})
	before, err := env.Counts(ctx)
	if err != nil {
		return 0, 0, err
	}
	if err := m.counts.zero(ctx); err != nil {
		return 0, 0, err
	}
	if err := f(); err != nil {
		return 0, 0, err
	}
	if instructions, err = m.counts.total(ctx); err != nil {
		return 0, 0, err
	}
	after, err := env.Counts(ctx)
	return instructions, after.Since(before).Scripts(), err
}
