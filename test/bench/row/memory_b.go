package row

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/test/bench/contender"
)

func memoryRows() []Row {
	semaphore := contender.Semaphore.Name
	return []Row{{
		ID: "memory", Title: "Memory of the server for 10 000 names, as many waiting, and as many resources",
		Columns: append([]string{Berth, semaphore}, peers...),
		Metrics: []Metric{
			{ID: "held", Title: "a name that is held", Unit: "bytes", Picture: true, Budgets: []Budget{{Limit: 300}}},
			{ID: "idle", Title: "a name that is idle", Unit: "bytes", Columns: []string{Berth, semaphore}, Budgets: []Budget{{Limit: 170}}},
			{ID: "waiter", Title: "one that waits", Unit: "bytes", Columns: []string{Berth}, Budgets: []Budget{{Limit: 400}}},
			{ID: "resource", Title: "a free resource of a pool", Unit: "bytes", Columns: []string{Berth}, Budgets: []Budget{{Limit: 250}}},
		},
		Notes: []string{
			"What used_memory of INFO has more than before. A name is idle when its lock has been released: Berth remembers it for a minute, the peers delete it.",
			"All who wait do so for one name. The peers keep no line.",
		},
		Cold: true, Measure: measureMemory,
	}}
}

func measureMemory(ctx context.Context, env *Env, column string) (map[string]float64, error) {
	locker, err := env.Locker(column)
	if err != nil {
		return nil, err
	}
	n, name := env.Pick(10_000, 200), env.Name("memory")
	// The first calls bring connections and scripts, which are no part of a name.
	if err := parallel(64, func(i int) error {
		unlock, err := locker.Lock(ctx, fmt.Sprintf("%s-warm-%d", name, i))
		if err != nil {
			return err
		}
		return unlock()
	}); err != nil {
		return nil, err
	}
	before, err := env.memory(ctx)
	if err != nil {
		return nil, err
	}
	names, err := hold(n, func() {}, func(i int) (func() error, error) {
		return locker.Lock(ctx, fmt.Sprintf("%s-%06d", name, i))
	})
	if err != nil {
		return nil, err
	}
	held, err := env.memory(ctx)
	if err := errors.Join(err, names.end()); err != nil {
		return nil, err
	}
	idle, err := env.memory(ctx)
	if err != nil {
		return nil, err
	}
	values := map[string]float64{"held": (held - before) / float64(n)}
	if column == Berth || column == contender.Semaphore.Name {
		values["idle"] = (idle - before) / float64(n)
	}
	if column == Berth {
		var wrong error
		values["waiter"], err = env.waiterMemory(ctx, locker, n)
		values["resource"], wrong = env.resourceMemory(ctx, n)
		err = errors.Join(err, wrong)
	}
	// The idle names would expire while something else is measured.
	return values, errors.Join(err, unlink(ctx, env.Redis, contender.Namespace))
}

// waiterMemory returns the memory that each of n waiting claims of Berth takes on the server.
func (e *Env) waiterMemory(ctx context.Context, locker contender.Locker, n int) (bytes float64, err error) {
	name := e.Name("memory")
	unlock, err := locker.Lock(ctx, name)
	if err != nil {
		return 0, err
	}
	waiting, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer func() {
		cancel()
		running.Wait()
		err = errors.Join(err, unlock(), e.settle(ctx)) // claims leave the line in the background
	}()
	// with has more calls wait. It returns the memory when all of them are in line.
	with := func(more, all int) (float64, error) {
		for range more {
			running.Go(func() { _, _ = locker.Lock(waiting, name) }) // until it is cancelled
		}
		if err := e.queued(ctx, name, all, nil); err != nil {
			return 0, err
		}
		return e.memory(ctx)
	}
	before, err := with(1, 1) // the first brings a subscription
	if err != nil {
		return 0, err
	}
	after, err := with(n, n+1)
	return (after - before) / float64(n), err
}

// resourceMemory returns the memory that each of n resources of one pool of Berth takes on the server.
func (e *Env) resourceMemory(ctx context.Context, n int) (bytes float64, err error) {
	own, err := contender.OpenNode(e.Addr, node.Config{})
	if err != nil {
		return 0, err
	}
	defer own.Close()
	if _, err := contender.Fill(ctx, own.Node, e.Name("warm"), 1); err != nil { // brings scripts
		return 0, err
	}
	before, err := e.memory(ctx)
	if err != nil {
		return 0, err
	}
	if _, err := contender.Fill(ctx, own.Node, e.Name("memory"), n); err != nil {
		return 0, err
	}
	after, err := e.memory(ctx)
	return (after - before) / float64(n), err
}

// memory returns how many bytes the server uses. Buffers and memory that is freed in the
// background are in it for a while, so memory takes the least of the readings, and ends after
// ten that were not lower.
func (e *Env) memory(ctx context.Context) (float64, error) {
	least := math.Inf(1)
	for higher := 0; higher < e.Pick(10, 1); higher++ {
		now, err := e.info(ctx, "memory", "used_memory")
		if err != nil {
			return 0, err
		}
		if now < least {
			least, higher = now, 0
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return 0, err
		}
	}
	return least, nil
}
