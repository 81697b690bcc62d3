package row

import (
	"context"
	"fmt"
	"slices"
	"time"
)

func fairnessRows() []Row {
	const workers, hold = 16, 5 * time.Millisecond
	return []Row{{
		ID:      "fairness",
		Title:   fmt.Sprintf("One name, %d workers in one process who hold it for %v", workers, hold),
		Columns: append([]string{Berth}, peers...),
		Metrics: []Metric{
			{ID: "p50", Title: "wait p50", Unit: "ms"},
			{ID: "p99", Title: "wait p99", Unit: "ms", Picture: true},
			{ID: "max", Title: "wait max", Unit: "ms"},
			{ID: "hold", Title: "hold, median", Unit: "ms"},
			{ID: "ideal", Title: "wait p99 / 16 median holds", Budgets: []Budget{{Limit: 1.1}}},
			{ID: "least", Title: "least share / even share", HigherIsBetter: true, Budgets: []Budget{{AtLeast: true, Limit: 0.95}}},
			{ID: "greatest", Title: "greatest share / even share", Budgets: []Budget{{Limit: 1.05}}},
		},
		Notes: []string{
			"Everyone locks, holds and unlocks again and again. The even share is that of all locks taken.",
			contendedNotes[2],
		},
		Measure: func(ctx context.Context, env *Env, column string) (map[string]float64, error) {
			locker, err := env.Locker(column)
			if err != nil {
				return nil, err
			}
			// Four times as long as others, for one turn more or less must not be 5 % of a share.
			c := contest{env: env, column: column, locker: locker, name: env.Name("fairness"), workers: workers, span: max(4*env.For, time.Second)}
			run, err := c.run(ctx, inProcess(&c, hold))
			if err != nil {
				return nil, err
			}
			// At least 1 each, where nobody had a turn.
			p99, median := quantile(run.waits, 0.99), max(quantile(run.holds, 0.5), 1)
			even := float64(max(run.locks, 1)) / workers
			return map[string]float64{
				"p50": millis(quantile(run.waits, 0.5)), "p99": millis(p99), "max": millis(quantile(run.waits, 1)),
				"hold":  millis(median),
				"ideal": float64(p99) / float64(workers*median),
				"least": float64(slices.Min(run.shares)) / even, "greatest": float64(slices.Max(run.shares)) / even,
			}, nil
		},
	}}
}
