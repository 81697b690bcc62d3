// Package report turns what was measured into a report: medians and ranges over the
// rounds, ratios, budgets, and their table, JSON and picture.
package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/berth-go/berth/test/bench/row"
)

// Report is everything that one run found.
type Report struct {
	Machine Machine `json:"machine"`
	// Date is when it began, RFC 3339.
	Date string `json:"date"`
	// Rounds is how often everything was measured.
	Rounds int `json:"rounds"`
	// For is how long a measurement took, as in "1s".
	For  string `json:"for"`
	Rows []Row  `json:"rows"`
}

// Row is what was found for one row.
type Row struct {
	ID      string            `json:"id"`
	Title   string            `json:"title"`
	Columns []string          `json:"columns"`
	Skipped map[string]string `json:"skipped,omitempty"`
	Notes   []string          `json:"notes,omitempty"`
	Metrics []Metric          `json:"metrics"`
}

// Metric is what was found for one metric of a row.
type Metric struct {
	ID             string `json:"id"`
	Title          string `json:"title"`
	Unit           string `json:"unit,omitempty"`
	HigherIsBetter bool   `json:"higher_is_better"`
	// Values by column.
	Values map[string]Spread `json:"values"`
	// Ratios of the row's first column to each other one, by its name.
	Ratios  map[string]Spread `json:"ratios,omitempty"`
	Budgets []Budget          `json:"budgets,omitempty"`

	picture bool
}

// Budget is what became of a budget.
type Budget struct {
	// Text says it in full, as in "Berth / raw ≥ 0.9".
	Text string `json:"text"`
	Spread
	// Met compares the median.
	Met bool `json:"met"`
}

// Spread is the values of all rounds, NaN where there was none, and their middle and
// range.
type Spread struct {
	Median Number   `json:"median"`
	Min    Number   `json:"min"`
	Max    Number   `json:"max"`
	Rounds []Number `json:"rounds"`
}

// Number is a float64 whose NaN and infinities are null in JSON.
type Number float64

// MarshalJSON writes a number, or null.
func (n Number) MarshalJSON() ([]byte, error) {
	if f := float64(n); !math.IsNaN(f) && !math.IsInf(f, 0) {
		return json.Marshal(f)
	}
	return []byte("null"), nil
}

// Found is what was measured for a row: for every round, by column and metric.
type Found []map[string]map[string]float64

func (f Found) series(column, metric string) []float64 {
	values := make([]float64, len(f))
	for i, round := range f {
		value, ok := round[column][metric]
		if !ok {
			value = math.NaN()
		}
		values[i] = value
	}
	return values
}

// NewRow sums up what was measured for a row.
func NewRow(r row.Row, found Found) Row {
	result := Row{ID: r.ID, Title: r.Title, Columns: r.Columns, Skipped: r.Skip, Notes: r.Notes}
	for _, m := range r.Metrics {
		result.Metrics = append(result.Metrics, newMetric(r, m, found))
	}
	return result
}

func newMetric(r row.Row, m row.Metric, found Found) Metric {
	result := Metric{
		ID: m.ID, Title: m.Title, Unit: m.Unit, HigherIsBetter: m.HigherIsBetter, picture: m.Picture,
		Values: map[string]Spread{}, Ratios: map[string]Spread{},
	}
	columns := r.With(m)
	for _, column := range columns {
		values := found.series(column, m.ID)
		result.Values[column] = spread(values)
		if column != columns[0] && columns[0] == r.Columns[0] {
			result.Ratios[column] = spread(ratios(found.series(columns[0], m.ID), values))
		}
	}
	for _, b := range m.Budgets {
		result.Budgets = append(result.Budgets, newBudget(r, m, b, found))
	}
	return result
}

func newBudget(r row.Row, m row.Metric, b row.Budget, found Found) Budget {
	column, sign := cmp.Or(b.Column, row.Berth), "≤"
	if b.AtLeast {
		sign = "≥"
	}
	values := found.series(column, m.ID)
	if len(b.Against) == 0 {
		result := Budget{Text: fmt.Sprintf("%s %s %v", column, sign, b.Limit), Spread: spread(values)}
		return result.judge(b)
	}
	other := m
	if i := slices.IndexFunc(r.Metrics, func(o row.Metric) bool { return o.ID == b.Metric }); i >= 0 {
		other = r.Metrics[i]
	}
	divisors := make([]float64, len(found))
	for i, round := range found {
		divisors[i] = best(round, b.Against, other)
	}
	against := strings.Join(b.Against, ", ")
	if len(b.Against) > 1 {
		against = "best of " + against
	}
	if other.ID != m.ID {
		against += ", " + other.Title
	}
	result := Budget{
		Text:   fmt.Sprintf("%s / %s %s %v", column, against, sign, b.Limit),
		Spread: spread(ratios(values, divisors)),
	}
	return result.judge(b)
}

func (b Budget) judge(of row.Budget) Budget {
	if of.AtLeast {
		b.Met = float64(b.Median) >= of.Limit
	} else {
		b.Met = float64(b.Median) <= of.Limit
	}
	return b
}

// best returns the best value that any of the columns has in a round, NaN if none has.
func best(round map[string]map[string]float64, columns []string, m row.Metric) float64 {
	found := math.NaN()
	for _, column := range columns {
		value, ok := round[column][m.ID]
		switch {
		case !ok || math.IsNaN(value):
		case math.IsNaN(found), m.HigherIsBetter && value > found, !m.HigherIsBetter && value < found:
			found = value
		}
	}
	return found
}

// ratios divides round by round. Nothing divided by nothing has no ratio; something
// divided by nothing is infinite.
func ratios(values, divisors []float64) []float64 {
	result := make([]float64, len(values))
	for i := range values {
		result[i] = values[i] / divisors[i]
	}
	return result
}

// spread sums up the values of the rounds that have one.
func spread(values []float64) Spread {
	result := Spread{Median: Number(math.NaN()), Min: Number(math.NaN()), Max: Number(math.NaN())}
	var sound []float64
	for _, v := range values {
		result.Rounds = append(result.Rounds, Number(v))
		if !math.IsNaN(v) {
			sound = append(sound, v)
		}
	}
	if len(sound) == 0 {
		return result
	}
	slices.Sort(sound)
	result.Min, result.Max = Number(sound[0]), Number(sound[len(sound)-1])
	middle := len(sound) / 2
	result.Median = Number(sound[middle])
	if len(sound)%2 == 0 {
		result.Median = Number((sound[middle-1] + sound[middle]) / 2)
	}
	return result
}

// Missed are the budgets that were not met.
func (r Report) Missed() []string {
	var missed []string
	for _, o := range r.Rows {
		for _, m := range o.Metrics {
			for _, b := range m.Budgets {
				if !b.Met {
					missed = append(missed, fmt.Sprintf("%s, %s: %s", o.ID, m.Title, b.Text))
				}
			}
		}
	}
	return missed
}
