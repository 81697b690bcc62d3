// Package row has what the benchmark measures: each Row is a question, asked of several
// contenders by turns over one server.
//
// # Adding a row
//
// Every file has a function that returns its rows (uncontendedRows, waiterRows, ...), and
// All calls them in the order of the report. What a row runs in a child process is a Job,
// listed in Jobs by a name. Nothing is registered by init, and Measure keeps nothing in
// package variables: what lives over the rounds of a row (connections, a filled pool) it
// asks of Kept, which opens it once and closes it when the row is over.
package row

import (
	"context"
	"slices"
	"time"
)

// Berth is the column that everything is compared with.
const Berth = "Berth"

// Row is one question to several contenders.
type Row struct {
	// ID selects it, as in "-only contended-16".
	ID string
	// Title heads its table.
	Title string
	// Columns are measured by turns, Berth first. They are contenders of package
	// contender, or whatever else Measure knows by that name.
	Columns []string
	// Skip says why a column cannot do this. It is not measured and shows "-".
	Skip map[string]string
	// Metrics are what Measure returns, in the order of the table.
	Metrics []Metric
	// Notes stand below the table: what a reader must know to read it right.
	Notes []string
	// Cold leaves out the unmeasured pass over all columns before the first round.
	Cold bool
	// Measure measures one column once, over about env.For. It returns the value of every
	// metric of that column by its ID; NaN where there is none this time. Its ctx ends
	// with the measurement.
	Measure func(ctx context.Context, env *Env, column string) (map[string]float64, error)
}

// Metric is a number that a row yields for its columns.
type Metric struct {
	ID    string
	Title string
	// Unit stands behind the title. Rates are per second ("/s"), times "ms" or "µs".
	Unit string
	// HigherIsBetter is so of rates, and says which of several columns is the best.
	HigherIsBetter bool
	// Columns have this metric. Default: all of the row that are not skipped.
	Columns []string
	// Picture has it drawn.
	Picture bool
	Budgets []Budget
}

// Budget bounds a metric: its value, or its ratio to other columns of the same round.
type Budget struct {
	// Column is whose value. Default: Berth.
	Column string
	// Against are columns whose best value of the same round divides it. Default: the
	// budget is for the value itself.
	Against []string
	// Metric of the columns in Against. Default: the same one.
	Metric string
	// AtLeast says that Limit is a lower bound. Default: an upper one.
	AtLeast bool
	Limit   float64
}

// With are the columns that have a metric, in their order.
func (r Row) With(m Metric) []string {
	var columns []string
	for _, column := range r.Columns {
		_, skipped := r.Skip[column]
		if !skipped && (len(m.Columns) == 0 || slices.Contains(m.Columns, column)) {
			columns = append(columns, column)
		}
	}
	return columns
}

// Scale is how much a row does.
type Scale struct {
	// For is how long one measurement takes, roughly.
	For time.Duration
	// Smoke has everything run for real, but hardly anything of it.
	Smoke bool
}

// Pick returns the first number, or the second where nothing but a smoke run is wanted.
func (s Scale) Pick(full, smoke int) int {
	if s.Smoke {
		return smoke
	}
	return full
}
