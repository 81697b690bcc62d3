package row

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/berth-go/berth/test/bench/contender"
)

// otherRows are semaphores and pools, Berth's beside those of others: cycles, and workers who wait.
func otherRows() []Row {
	var rows []Row
	for _, of := range []struct {
		id, what     string
		title, names string
		contenders   []contender.Contender
		note         string
		waiting      int // how many workers there are where some wait
	}{
		{
			"semaphore", "acquire + release", "Acquire and release 1 permit of 10, %d worker(s) in one process", ", a name for each", contender.Semaphores,
			"None of the others has an order of who waits, or a fence; redis-semaphore and asynq go by the clocks of their clients. asynq does not renew.",
			64,
		},
		{
			"allocate", "allocate + release", "Allocate and release 1 resource of 100, %d worker(s) in one process", ", one pool", contender.Pools,
			"redis-allocator has neither waiting nor a fence, and does not know who holds what. Its two scripts are here without its helper functions, which are a third of its instructions.",
			200,
		},
	} {
		first, notes := of.contenders[0].Name, []string{of.note}
		var columns []string
		for _, c := range of.contenders {
			columns = append(columns, c.Name)
			notes = append(notes, c.Name+": "+c.How+".")
		}
		for _, workers := range []int{1, 64} {
			rows = append(rows, Row{
				ID: fmt.Sprintf("%s-%d", of.id, workers), Title: fmt.Sprintf(of.title, workers) + of.names, Columns: columns,
				Metrics: cycleMetrics(of.what, first), Notes: notes,
				Measure: func(ctx context.Context, env *Env, column string) (map[string]float64, error) {
					return measureCycles(ctx, env, column, workers, false)
				},
			})
		}
		rows = append(rows, Row{
			ID:      of.id + "-contended",
			Title:   fmt.Sprintf(of.title, of.waiting) + ", who hold it for 1 ms",
			Columns: columns,
			Metrics: []Metric{
				{ID: "locks", Title: "holds taken", Unit: "/s", HigherIsBetter: true, Picture: true},
				{ID: "p50", Title: "wait p50", Unit: "ms"},
				{ID: "p99", Title: "wait p99", Unit: "ms"},
				{ID: "longest", Title: "longest wait of the median worker", Unit: "ms", Picture: true},
				{ID: "share", Title: "least share / greatest", HigherIsBetter: true},
				{ID: "trips", Title: "round trips", Unit: "per hold"},
			},
			Notes: append(slices.Clone(notes), "The others try each 10 ms, as redis-semaphore does by default."),
			Measure: func(ctx context.Context, env *Env, column string) (map[string]float64, error) {
				return measureContest(ctx, env, column, env.Pick(of.waiting, 16), time.Millisecond)
			},
		})
	}
	return rows
}
