package row

import (
	"context"
	"fmt"
	"math"
	"runtime"

	"github.com/berth-go/berth/test/bench/contender"
)

func clientRows() []Row {
	semaphore, pool := contender.Semaphore.Name, contender.Pool.Name
	return []Row{{
		ID: "client", Title: "What the client allocates for a cycle: a lock, 1 permit of 10, 1 resource of 100",
		Columns: []string{Berth, semaphore, pool},
		Metrics: []Metric{
			{
				ID: "allocations", Title: "allocations", Unit: "per cycle",
				Budgets: []Budget{{Limit: 13}, {Column: semaphore, Limit: 16}, {Column: pool, Limit: 25}},
			},
			{ID: "bytes", Title: "allocated", Unit: "bytes per cycle"},
		},
		Notes: []string{
			"64 workers, a name for each but for the one pool, a context that never ends. The allocations are rounded down: heartbeats are in them.",
		},
		Measure: measureClient,
	}}
}

func measureClient(_ context.Context, env *Env, column string) (map[string]float64, error) {
	locker, err := env.Locker(column)
	if err != nil {
		return nil, err
	}
	one, ok := locker.(contender.Cycler)
	if !ok {
		return nil, fmt.Errorf("%s has no cycle of its own", column)
	}
	const workers = 64
	name, each := env.Name("client"), env.Pick(500, 2)
	cycles := func() error {
		return parallel(workers, func(w int) error {
			its := fmt.Sprintf("%s-%d", name, w)
			for range each {
				if err := one.Cycle(context.Background(), its); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := cycles(); err != nil { // the first ones bring connections and scripts
		return nil, err
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := cycles(); err != nil {
		return nil, err
	}
	runtime.ReadMemStats(&after)
	n := float64(workers * each)
	return map[string]float64{
		"allocations": math.Floor(float64(after.Mallocs-before.Mallocs) / n),
		"bytes":       float64(after.TotalAlloc-before.TotalAlloc) / n,
	}, nil
}
