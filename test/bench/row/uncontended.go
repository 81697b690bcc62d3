package row

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/berth-go/berth/test/bench/contender"
)

// peers are the libraries that Berth is compared with.
var peers = []string{"redsync", "redislock", "rueidislock"}

func uncontendedRows() []Row {
	return []Row{uncontended(1), uncontended(64)}
}

func uncontended(workers int) Row {
	raw, semaphore := contender.Raw.Name, contender.Semaphore.Name
	budgets := []Budget{
		{Against: []string{"rueidislock"}, AtLeast: true, Limit: 0.95},
		{Against: []string{"redislock"}, AtLeast: true, Limit: 1.4},
		{Against: []string{"redsync"}, AtLeast: true, Limit: 1.8},
		{Column: semaphore, Against: []string{"rueidislock"}, AtLeast: true, Limit: 0.65},
	}
	if workers == 1 {
		budgets = []Budget{
			{Against: []string{"rueidislock"}, AtLeast: true, Limit: 1},
			{Against: []string{raw}, AtLeast: true, Limit: 0.9},
		}
	}
	return Row{
		ID:      fmt.Sprintf("uncontended-%d", workers),
		Title:   fmt.Sprintf("Lock and release, %d worker(s) in one process, a name for each", workers),
		Columns: append([]string{Berth, contender.Cancellable.Name, semaphore, raw}, peers...),
		Metrics: cycleMetrics("lock + release", Berth, budgets...),
		Notes: []string{
			"Berth and semaphore are called with a context that never ends, cancellable is Berth's lock called with one that can, as are all others: Berth hands such a call to another goroutine, so that the caller can leave it.",
			"semaphore is Berth's with a capacity of 10; raw is the two scripts of Berth's lock, sent by rueidis alone.",
			"A round trip is a script or a command sent by the client. Commands are those on the server: each script, and each command inside one.",
			"Berth's round trips may be a little over 2: heartbeats.",
		},
		Measure: func(ctx context.Context, env *Env, column string) (map[string]float64, error) {
			return measureCycles(ctx, env, column, workers, false)
		},
	}
}

// cycleMetrics are those of measureCycles: the rate of something, with its budgets, and what a cycle takes.
// The round trips of a column are bounded.
func cycleMetrics(what, column string, rates ...Budget) []Metric {
	return []Metric{
		{ID: "cycles", Title: what, Unit: "/s", HigherIsBetter: true, Picture: true, Budgets: rates},
		{ID: "trips", Title: "round trips", Unit: "per cycle", Budgets: []Budget{{Column: column, Limit: 2.01}}},
		{ID: "scripts", Title: "scripts", Unit: "per cycle"},
		{ID: "commands", Title: "commands", Unit: "per cycle"},
		{ID: "server", Title: "server time", Unit: "µs per cycle"},
	}
}

func freshRows() []Row {
	return []Row{fresh(1), fresh(64)}
}

// fresh is uncontended with a new name for each cycle.
func fresh(workers int) Row {
	return Row{
		ID:      fmt.Sprintf("fresh-%d", workers),
		Title:   fmt.Sprintf("Lock and release, %d worker(s) in one process, a new name each time", workers),
		Columns: append([]string{Berth, contender.Semaphore.Name}, peers...),
		Metrics: cycleMetrics("lock + release", Berth),
		Notes: []string{
			"A lock for each order or each customer is used like this: the server mostly does not know the name. Berth remembers an idle name for a minute, the peers delete it. What Berth remembers is removed after each measurement.",
			"Berth and semaphore are called with a context that never ends, as in the uncontended rows.",
		},
		Measure: func(ctx context.Context, env *Env, column string) (map[string]float64, error) {
			values, err := measureCycles(ctx, env, column, workers, true)
			return values, errors.Join(err, unlink(context.WithoutCancel(ctx), env.Redis, contender.Namespace))
		},
	}
}

// measureCycles has workers lock and release: each its own name, or with fresh a new one in
// each cycle.
func measureCycles(ctx context.Context, env *Env, column string, workers int, fresh bool) (map[string]float64, error) {
	c, err := contender.Find(column)
	if err != nil {
		return nil, err
	}
	locker, err := env.Locker(column)
	if err != nil {
		return nil, err
	}
	// A lock that does not come at all must not stop the run.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	guard := time.AfterFunc(env.For+5*time.Second, cancel)
	defer guard.Stop()

	call := ctx
	if slices.Contains([]string{Berth, contender.Semaphore.Name, contender.Pool.Name}, column) {
		call = context.Background() // WithoutCancel would allocate
	}
	name := env.Name("cycle")
	before, err := env.Counts(ctx)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	all, errs := make([]int, workers), make([]error, workers)
	var running sync.WaitGroup
	for w := range workers {
		running.Go(func() {
			mine := fmt.Sprintf("%s-%d", name, w)
			next := func(int) string { return mine }
			if fresh {
				next = func(i int) string { return mine + "-" + strconv.Itoa(i) }
			}
			all[w], errs[w] = cycle(call, locker, next, start.Add(env.For))
		})
	}
	running.Wait()
	took := time.Since(start)
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	after, err := env.Counts(context.WithoutCancel(ctx))
	if err != nil {
		return nil, err
	}
	ran, cycles := after.Since(before), float64(max(sum(all), 1))
	sent := ran.Of(append(c.Plain, scripts...)...)
	return map[string]float64{
		"cycles":   float64(sum(all)) / took.Seconds(),
		"trips":    sent.Calls / cycles,
		"scripts":  ran.Scripts() / cycles,
		"commands": ran.Commands() / cycles,
		"server":   sent.Micros / cycles,
	}, nil
}

// cycle locks and unlocks, at least once, until a point in time, and returns how often. The
// cycle that is under way then is ended and counts. name returns the name for each turn. A
// wait that ctx had to end is no cycle.
func cycle(ctx context.Context, locker contender.Locker, name func(i int) string, end time.Time) (int, error) {
	for all := 0; ; {
		unlock, err := locker.Lock(ctx, name(all))
		if ctx.Err() != nil {
			return all, nil
		} else if err != nil {
			return 0, fmt.Errorf("lock: %w", err)
		}
		if err := unlock(); err != nil {
			return 0, fmt.Errorf("unlock: %w", err)
		}
		all++
		if time.Now().After(end) {
			return all, nil
		}
	}
}

func sum(values []int) int {
	total := 0
	for _, v := range values {
		total += v
	}
	return total
}
