package row

import (
	"context"
	"errors"
	"math"
	"slices"
)

// busyRows are the rows whose rates have budgets, of the columns that these name, beside two processes that
// compute without end. There each budget is a tenth easier.
func busyRows() []Row {
	var rows []Row
	for _, r := range slices.Concat(uncontendedRows(), contendedRows()[:1], handoffRows()) {
		rows = append(rows, beside(r))
	}
	return rows
}

func beside(r Row) Row {
	metric := r.Metrics[slices.IndexFunc(r.Metrics, func(m Metric) bool { return m.ID == "cycles" || m.ID == "locks" || m.ID == "p50" })]
	metrics := []Metric{metric}
	if metric.ID == "locks" {
		metrics = []Metric{r.Metrics[0], metric} // the hand-offs
	}
	columns := map[string]bool{}
	for i, m := range metrics {
		metrics[i].Picture, metrics[i].Budgets = false, slices.Clone(m.Budgets)
		for j, b := range m.Budgets {
			if b.Column == "" {
				b.Column = Berth
			}
			for _, column := range append(b.Against, b.Column) {
				columns[column] = true
			}
			easier := 1.1
			if b.AtLeast {
				easier = 0.9
			}
			b.Limit = math.Round(1000*easier*b.Limit) / 1000
			metrics[i].Budgets[j] = b
		}
	}
	return Row{
		ID: "busy-" + r.ID, Title: r.Title + ", beside two busy loops", Metrics: metrics,
		Columns: slices.DeleteFunc(slices.Clone(r.Columns), func(column string) bool { return !columns[column] }),
		Notes:   []string{"Each budget is a tenth easier than that of " + r.ID + "."},
		Measure: func(ctx context.Context, env *Env, column string) (values map[string]float64, err error) {
			for range 2 {
				loop, err := env.Start(ctx, busyJob, nil)
				if err != nil {
					return nil, err
				}
				defer func() {
					_ = loop.Kill()  // nothing else ends it
					_ = loop.Close() // its error says that it was killed
				}()
				if err := loop.Receive(&proceed{}); err != nil {
					return nil, errors.Join(err, ctx.Err())
				}
			}
			return r.Measure(ctx, env, column)
		},
	}
}

// busyJob is the work of a child process that computes until it is killed.
const busyJob = "busy"

func runBusy(_ context.Context, p *Parent) error {
	if err := errors.Join(p.Receive(new(any)), p.Send(proceed{})); err != nil {
		return err
	}
	for n := uint64(1); ; n *= 3 { // for ever: it stays odd
		if n == 0 {
			return nil
		}
	}
}
