package row

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/berth-go/berth/test/bench/contender"
)

// contendedMetrics are those of all rows in which workers wait for one name. The hand-offs are at least
// so many times those of the best peer; locks are the budgets of the locks taken.
func contendedMetrics(handoffs float64, locks ...Budget) []Metric {
	return []Metric{
		{
			ID: "handoffs", Title: "hand-offs to another worker", Unit: "/s", HigherIsBetter: true, Picture: true,
			Budgets: []Budget{{Against: peers, AtLeast: true, Limit: handoffs}},
		},
		{ID: "locks", Title: "locks taken", Unit: "/s", HigherIsBetter: true, Budgets: locks},
		{ID: "p50", Title: "wait p50", Unit: "ms"},
		{ID: "p99", Title: "wait p99", Unit: "ms"},
		{ID: "max", Title: "wait max", Unit: "ms"},
		{
			ID: "longest", Title: "longest wait of the median worker", Unit: "ms", Picture: true,
			Budgets: []Budget{{Against: peers, Limit: 1}},
		},
		{ID: "share", Title: "least share / greatest", HigherIsBetter: true},
		{ID: "starved", Title: "workers with nothing"},
		{ID: "scripts", Title: "scripts", Unit: "per lock"},
		{ID: "trips", Title: "round trips", Unit: "per lock"},
	}
}

var contendedNotes = []string{
	"Everyone locks and unlocks again and again with no hold time. A lock that the same worker takes again is no hand-off.",
	"p50 and p99 are over all waits, most of which are those of a worker who takes again what it has just given back, where that is possible: hence the longest wait of each worker.",
	"A wait that the end of the run cut off counts with its length so far, so long waits are longer than they look here.",
}

func contendedRows() []Row {
	var rows []Row
	for _, workers := range []int{16, 1000} {
		metrics := contendedMetrics(1)
		if workers == 16 {
			metrics = contendedMetrics(20,
				Budget{Against: []string{"redsync"}, AtLeast: true, Limit: 1},
				// Its workers take their own locks again: most of the others get nothing.
				Budget{Against: []string{"redislock"}, AtLeast: true, Limit: 0.8},
				Budget{Against: []string{"rueidislock"}, AtLeast: true, Limit: 1})
		}
		rows = append(rows, Row{
			ID:      fmt.Sprintf("contended-%d", workers),
			Title:   fmt.Sprintf("One name, %d workers in one process", workers),
			Columns: append([]string{Berth}, peers...),
			Metrics: metrics,
			Notes:   contendedNotes,
			Measure: func(ctx context.Context, env *Env, column string) (map[string]float64, error) {
				return measureContest(ctx, env, column, env.Pick(workers, 16), 0)
			},
		})
	}
	return rows
}

// measureContest has workers of this process take turns at one name.
func measureContest(ctx context.Context, env *Env, column string, workers int, hold time.Duration) (map[string]float64, error) {
	locker, err := env.Locker(column)
	if err != nil {
		return nil, err
	}
	c := contest{env: env, column: column, locker: locker, name: env.Name("contended"), workers: workers, span: env.For}
	run, err := c.run(ctx, inProcess(&c, hold))
	if err != nil {
		return nil, err
	}
	return run.metrics(), nil
}

// contest is one measurement of workers who wait for one name.
type contest struct {
	env     *Env
	column  string
	locker  contender.Locker
	name    string
	workers int
	span    time.Duration // how long is measured
}

// contestResult is what came of a contest.
type contestResult struct {
	tally
	span           time.Duration // that was measured
	scripts, trips float64
}

// start has workers take turns at a contest's name until stop is called, which returns
// their turns.
type start func(ctx context.Context) (stop func() ([][]turn, error), err error)

// run holds the lock until all workers have asked for it, and measures from the moment
// in which it gives the lock back.
func (c *contest) run(ctx context.Context, begin start) (contestResult, error) {
	fail := func(err error) (contestResult, error) { return contestResult{}, err }
	ctx, cancel := context.WithCancel(ctx) // what a failure leaves behind
	defer cancel()
	who, err := contender.Find(c.column)
	if err != nil {
		return fail(err)
	}
	unlock, err := c.locker.Lock(ctx, c.name)
	if err != nil {
		return fail(err)
	}
	quiet, err := c.env.Counts(ctx)
	if err != nil {
		return fail(err)
	}
	stop, err := begin(ctx)
	if err != nil {
		return fail(err)
	}
	sent := append(who.Plain, scripts...)
	var before Counts
	if err := until(ctx, "all workers have asked", func() (bool, error) {
		before, err = c.env.Counts(ctx)
		return before.Since(quiet).Of(sent...).Calls >= float64(c.workers), err
	}); err != nil {
		return fail(err)
	}
	from := time.Now()
	if err := unlock(); err != nil {
		return fail(err)
	}
	if err := pause(ctx, c.span); err != nil {
		return fail(err)
	}
	to := time.Now()
	after, err := c.env.Counts(ctx)
	if err != nil {
		return fail(err)
	}
	turns, err := stop()
	if err != nil {
		return fail(err)
	}
	if err := c.env.settle(ctx); err != nil {
		return fail(err)
	}
	result, ran := tallyTurns(turns, from, to), after.Since(before)
	locks := float64(max(result.locks, 1))
	return contestResult{
		tally:   result,
		span:    to.Sub(from),
		scripts: ran.Scripts() / locks,
		trips:   ran.Of(sent...).Calls / locks,
	}, nil
}

// inProcess starts a contest's workers as goroutines over its one locker.
func inProcess(c *contest, hold time.Duration) start {
	return func(ctx context.Context) (func() ([][]turn, error), error) {
		ctx, cancel := context.WithCancel(ctx)
		turns, errs := make([][]turn, c.workers), make([]error, c.workers)
		var running sync.WaitGroup
		for w := range c.workers {
			running.Go(func() { turns[w], errs[w] = takeTurns(ctx, c.locker, c.name, hold) })
		}
		return func() ([][]turn, error) {
			cancel()
			running.Wait()
			for _, err := range errs {
				if err != nil {
					return nil, err
				}
			}
			return turns, nil
		}, nil
	}
}

// settle waits until nothing runs on the server any more, for at most 5 s: those who
// were stopped may have something to put in order yet.
func (e *Env) settle(ctx context.Context) error {
	before, err := e.Counts(ctx)
	for end := time.Now().Add(5 * time.Second); err == nil && time.Now().Before(end); {
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
		var after Counts
		if after, err = e.Counts(ctx); err == nil && after.Since(before).Commands() == 0 {
			return nil
		}
		before = after
	}
	return err
}

func (r contestResult) metrics() map[string]float64 {
	least, greatest, starved := slices.Min(r.shares), slices.Max(r.shares), 0
	for _, share := range r.shares {
		if share == 0 {
			starved++
		}
	}
	return map[string]float64{
		"handoffs": float64(r.handoffs) / r.span.Seconds(),
		"locks":    float64(r.locks) / r.span.Seconds(),
		"p50":      millis(quantile(r.waits, 0.5)),
		"p99":      millis(quantile(r.waits, 0.99)),
		"max":      millis(quantile(r.waits, 1)),
		"longest":  millis(quantile(r.longest, 0.5)),
		"share":    float64(least) / float64(max(greatest, 1)),
		"starved":  float64(starved),
		"scripts":  r.scripts,
		"trips":    r.trips,
	}
}
