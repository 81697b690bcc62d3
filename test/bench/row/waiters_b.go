package row

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
	"github.com/berth-go/berth/test/bench/contender"
)

// noHeartbeats is the column of Berth with a wait lease so long that no heartbeat is due.
const noHeartbeats = "Berth, 5 min"

func waiterRows() []Row {
	return []Row{{
		ID: "waiters-10000", Title: "10 000 waiting for one name in one process",
		Columns: []string{Berth, noHeartbeats, "redsync", "redislock", "rueidislock"},
		Metrics: []Metric{
			{ID: "connections", Title: "connections beyond those before", Budgets: []Budget{{Limit: 1}}},
			{ID: "bytes", Title: "heap and stacks for each", Unit: "bytes", Picture: true, Budgets: []Budget{{Limit: 7168}}},
			{ID: "queued", Title: "until all are in line", Unit: "ms", Columns: []string{Berth, noHeartbeats}},
			{ID: "commands", Title: "commands while idle", Unit: "/s", Budgets: []Budget{{Column: noHeartbeats, Limit: 1.5}}},
			{ID: "scripts", Title: "scripts while idle", Unit: "/s"},
			{ID: "busy", Title: "server's processor time while idle", Unit: "ms/s"},
		},
		Notes: []string{
			"All wait in a process of their own, behind one that holds. The peers have 1000 waiting: more are too many for them, as each polls, or gives a try up after 20 ms.",
			"\"" + noHeartbeats + "\" has a wait lease of 5 minutes: what it sends while idle is no heartbeat. A node reads every few seconds, in four commands, whether it is paused or drained.",
			"The pings by which clients watch their connections are not counted.",
		},
		Cold: true, Measure: measureWaiters,
	}}
}

// waitersJob is the work of a child process: it holds a name and lets others wait for it.
// It sends its weight before they come, and, when told, that with them; then it is killed.
const waitersJob = "waiters"

type waitersArgs struct {
	Addr, Column, Name string
	Waiting            int
}

// isBerth says that the server can be asked who is in line, and that many are.
func (a waitersArgs) isBerth() bool { return a.Column == Berth || a.Column == noHeartbeats }

// weight is what the process weighs, in bytes, and how many of those who wait have been
// granted the lock, or failed.
type weight struct {
	Bytes  uint64
	Passed int
	Err    string
}

// proceed tells a child to go on.
type proceed struct{}

func runWaiters(ctx context.Context, p *Parent) error {
	var args waitersArgs
	if err := p.Receive(&args); err != nil {
		return err
	}
	column, lease := args.Column, time.Duration(0)
	if column == noHeartbeats {
		column, lease = Berth, silent
	}
	locker, err := openLeased(column, args.Addr, lease)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Hour) // without a deadline redislock would give up
	defer cancel()
	for i := range 64 { // names of many slots, for which rueidis opens all connections that it may
		unlock, err := locker.Lock(ctx, fmt.Sprintf("%s-%d", args.Name, i))
		if err != nil {
			return err
		}
		if err := unlock(); err != nil {
			return err
		}
	}
	if _, err := locker.Lock(ctx, args.Name); err != nil {
		return err
	}
	if err := p.exchange(weight{Bytes: used()}); err != nil {
		return err
	}
	var passed atomic.Int64
	var failure atomic.Value
	for range args.Waiting {
		go func() {
			if _, err := locker.Lock(ctx, args.Name); err != nil {
				failure.Store(err.Error())
			}
			passed.Add(1)
		}()
	}
	if err := p.exchange(proceed{}); err != nil { // they come
		return err
	}
	after := weight{Bytes: used(), Passed: int(passed.Load())}
	if text := failure.Load(); text != nil {
		after.Err = text.(string)
	}
	return p.exchange(after)
}

// exchange sends a message and waits for the word to go on.
func (p *Parent) exchange(v any) error {
	if err := p.Send(v); err != nil {
		return err
	}
	return p.Receive(&proceed{})
}

// used is what the heap and the stacks take after a collection.
func used() uint64 {
	runtime.GC()
	runtime.GC() // what the first has only moved aside: sync.Pool
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

func measureWaiters(ctx context.Context, env *Env, column string) (map[string]float64, error) {
	args := waitersArgs{Addr: env.Addr, Column: column, Name: env.Name("waiters"), Waiting: env.Pick(10_000, 200)}
	if !args.isBerth() {
		args.Waiting = env.Pick(1000, 50)
	}
	child, err := env.Start(ctx, waitersJob, args)
	if err != nil {
		return nil, err
	}
	defer func() {
		_ = child.Kill()  // it may have ended
		_ = child.Close() // its error says that it was killed
	}()
	return watchWaiters(ctx, env, child, args)
}

func watchWaiters(ctx context.Context, env *Env, child *Child, args waitersArgs) (map[string]float64, error) {
	var before, after weight
	if err := child.Receive(&before); err != nil {
		return nil, err
	}
	connections, err := env.connections(ctx)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	if err := child.Send(proceed{}); err != nil {
		return nil, err
	}
	if err := child.Receive(&proceed{}); err != nil {
		return nil, err
	}
	if args.isBerth() {
		if err := env.queued(ctx, args.Name, args.Waiting, nil); err != nil {
			return nil, err
		}
	}
	queued := time.Since(start)
	// The peers' have all asked by then, and what comes with a first wait is over.
	if err := pause(ctx, time.Duration(env.Pick(1000, 50))*time.Millisecond); err != nil {
		return nil, err
	}
	// Two of the periods in which Berth's heartbeats come, less than the TTL of those
	// holders that do not renew.
	quiet, err := env.idle(ctx, time.Duration(env.Pick(3333, 50))*time.Millisecond)
	if err != nil {
		return nil, err
	}
	now, err := env.connections(ctx)
	if err != nil {
		return nil, err
	}
	if err := child.Send(proceed{}); err != nil {
		return nil, err
	}
	if err := child.Receive(&after); err != nil {
		return nil, err
	}
	if after.Passed > 0 {
		return nil, fmt.Errorf("%d of those who were to wait did not: %s", after.Passed, after.Err)
	}
	values := map[string]float64{
		"connections": now - connections,
		"bytes":       (float64(after.Bytes) - float64(before.Bytes)) / float64(args.Waiting),
		"commands":    quiet.commands, "scripts": quiet.scripts, "busy": quiet.busy,
	}
	if args.isBerth() {
		values["queued"] = millis(queued)
	}
	return values, nil
}

// oneName is the column of permits of one semaphore.
const oneName = "Berth, one name"

func holderRows() []Row {
	renews := "its locks do not renew by themselves"
	return []Row{{
		ID: "holders-10000", Title: "10 000 held and renewed by one process",
		Columns: []string{Berth, oneName, "redsync", "redislock", "rueidislock"},
		Skip:    map[string]string{"redsync": renews, "redislock": renews},
		Metrics: []Metric{
			{ID: "scripts", Title: "scripts while idle", Unit: "/s", Budgets: []Budget{{Column: oneName, Limit: 20}}},
			{ID: "commands", Title: "commands while idle", Unit: "/s", Budgets: []Budget{{Limit: 24_000}}},
			{ID: "busy", Title: "server's processor time while idle", Unit: "ms/s", Picture: true},
		},
		Notes: []string{
			"Berth: locks of 10 000 names, each with a lease of 5 s. \"" + oneName + "\": permits of one semaphore, each with a lease of 10 s. rueidislock: 10 000 names, 5 s each.",
		},
		Cold: true, Measure: measureHolders,
	}}
}

func measureHolders(ctx context.Context, env *Env, column string) (map[string]float64, error) {
	n := env.Pick(10_000, 200)
	var h *holders
	var err error
	// Two periods of what renews: a third of a lease, rueidislock's half a TTL.
	var window time.Duration
	switch column {
	case oneName:
		window = 6667 * time.Millisecond
		h, err = holdPermits(ctx, env, n)
	case Berth:
		window = 3333 * time.Millisecond
		h, err = holdLocks(ctx, env, column, n)
	default:
		window = 5000 * time.Millisecond
		h, err = holdLocks(ctx, env, column, n)
	}
	if err != nil {
		return nil, err
	}
	if env.Smoke {
		window = 50 * time.Millisecond
	}
	quiet, err := env.idle(ctx, window)
	if err = errors.Join(err, h.end()); err != nil {
		return nil, err
	}
	return map[string]float64{"scripts": quiet.scripts, "commands": quiet.commands, "busy": quiet.busy}, nil
}

// holders are so many holds of one process.
type holders struct {
	release []func() error
	close   func()
}

// end gives everything back.
func (h *holders) end() error {
	err := parallel(len(h.release), func(i int) error {
		if h.release[i] == nil {
			return nil
		}
		return h.release[i]()
	})
	h.close()
	return err
}

func holdLocks(ctx context.Context, env *Env, column string, n int) (*holders, error) {
	locker, err := openLocker(column, env.Addr)
	if err != nil {
		return nil, err
	}
	name := env.Name("held")
	return hold(n, locker.Close, func(i int) (func() error, error) {
		return locker.Lock(ctx, fmt.Sprintf("%s-%d", name, i))
	})
}

func holdPermits(ctx context.Context, env *Env, n int) (*holders, error) {
	own, err := contender.OpenNode(env.Addr, node.Config{})
	if err != nil {
		return nil, err
	}
	sem := semaphore.New(own.Node, env.Name("held"), n, semaphore.Config{})
	return hold(n, own.Close, func(int) (func() error, error) {
		permit, err := sem.Acquire(ctx, nil)
		if err != nil {
			return nil, err
		}
		return func() error { return permit.Release(ctx) }, nil
	})
}

// hold takes n holds. Where one fails, it gives all back.
func hold(n int, end func(), take func(i int) (func() error, error)) (*holders, error) {
	h := &holders{release: make([]func() error, n), close: end}
	err := parallel(n, func(i int) (err error) {
		h.release[i], err = take(i)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, h.end())
	}
	return h, nil
}
