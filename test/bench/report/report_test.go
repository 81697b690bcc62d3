package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/test/bench/row"
)

func TestSpread(t *testing.T) {
	for name, c := range map[string]struct {
		values           []float64
		median, low, top float64
	}{
		"odd":              {[]float64{3, 1, 2}, 2, 1, 3},
		"even":             {[]float64{4, 1, 2, 3}, 2.5, 1, 4},
		"one":              {[]float64{7}, 7, 7, 7},
		"without a round":  {[]float64{math.NaN(), 5, 1, 3}, 3, 1, 5},
		"infinite and not": {[]float64{math.Inf(1), 1, 2}, 2, 1, math.Inf(1)},
		"all infinite":     {[]float64{math.Inf(1), math.Inf(1)}, math.Inf(1), math.Inf(1), math.Inf(1)},
	} {
		t.Run(name, func(t *testing.T) {
			s := spread(c.values)
			require.Equal(t, [3]Number{Number(c.median), Number(c.low), Number(c.top)}, [3]Number{s.Median, s.Min, s.Max})
			require.Len(t, s.Rounds, len(c.values))
		})
	}
	require.Equal(t, "-", spread(nil).String())
	require.Equal(t, "-", spread([]float64{math.NaN(), math.NaN()}).String())
}

func TestNumbersAreShort(t *testing.T) {
	for want, n := range map[string]Number{
		"0": 0, "12346": 12345.6, "99.9": 99.94, "12.3": 12.34, "1.23": 1.234, "0.12": 0.123, "0.012": 0.0123,
		"-": Number(math.NaN()), "∞": Number(math.Inf(1)),
	} {
		require.Equal(t, want, n.String())
	}
}

// sample is a row of three columns, measured in three rounds.
func sample() Row {
	r := row.Row{
		ID: "sample-1", Title: "A sample <&>", Columns: []string{row.Berth, "peer", "slow", "none"},
		Skip: map[string]string{"none": "it cannot"}, Notes: []string{"a note"},
		Metrics: []row.Metric{
			{ID: "rate", Title: "rate", Unit: "/s", HigherIsBetter: true, Picture: true, Budgets: []row.Budget{
				{Against: []string{"peer", "slow"}, AtLeast: true, Limit: 0.5},
				{Against: []string{"slow"}, Limit: 3},
			}},
			{ID: "wait", Title: "wait", Unit: "ms", Picture: true, Budgets: []row.Budget{
				{Limit: 4},
				{Against: []string{"slow", "peer"}, Limit: 1},
				{Column: "peer", Against: []string{row.Berth}, Metric: "rate", Limit: 1},
			}},
			{ID: "own", Title: "own", Columns: []string{row.Berth}},
		},
	}
	round := func(berth, peer, slow, wait float64) map[string]map[string]float64 {
		return map[string]map[string]float64{
			row.Berth: {"rate": berth, "wait": wait, "own": 0},
			"peer":    {"rate": peer, "wait": 8},
			"slow":    {"rate": slow, "wait": 5},
		}
	}
	return NewRow(r, Found{round(100, 200, 50, 2), round(120, 100, 300, 4), round(90, 300, 30, 5)})
}

func numbers(values ...float64) []Number {
	var result []Number
	for _, v := range values {
		result = append(result, Number(v))
	}
	return result
}

func TestRatiosAreTakenRoundByRound(t *testing.T) {
	rate := sample().Metrics[0]
	require.Equal(t, Spread{Median: 100, Min: 90, Max: 120, Rounds: numbers(100, 120, 90)}, rate.Values[row.Berth])
	require.Equal(t, Spread{Median: 200, Min: 100, Max: 300, Rounds: numbers(200, 100, 300)}, rate.Values["peer"])
	require.Equal(t, Spread{Median: 0.5, Min: 0.3, Max: 1.2, Rounds: numbers(0.5, 1.2, 0.3)}, rate.Ratios["peer"])
	require.Equal(t, Spread{Median: 2, Min: 0.4, Max: 3, Rounds: numbers(2, 0.4, 3)}, rate.Ratios["slow"])
	require.NotContains(t, rate.Values, "none")
	require.NotContains(t, rate.Ratios, row.Berth)
}

func TestBudgets(t *testing.T) {
	var found []Budget
	for _, m := range sample().Metrics {
		found = append(found, m.Budgets...)
	}
	require.Equal(t, []Budget{
		{ // against the best of each round: 200, 300, 300
			Text:   "Berth / best of peer, slow ≥ 0.5",
			Spread: Spread{Median: 0.4, Min: 0.3, Max: 0.5, Rounds: numbers(0.5, 0.4, 0.3)},
		},
		{
			Text: "Berth / slow ≤ 3", Met: true,
			Spread: Spread{Median: 2, Min: 0.4, Max: 3, Rounds: numbers(2, 0.4, 3)},
		},
		{
			Text: "Berth ≤ 4", Met: true,
			Spread: Spread{Median: 4, Min: 2, Max: 5, Rounds: numbers(2, 4, 5)},
		},
		{ // less is better: 5 in each round
			Text: "Berth / best of slow, peer ≤ 1", Met: true,
			Spread: Spread{Median: 0.8, Min: 0.4, Max: 1, Rounds: numbers(0.4, 0.8, 1)},
		},
		{
			Text: "peer / Berth, rate ≤ 1", Met: true,
			Spread: Spread{Median: 0.08, Min: 8.0 / 120, Max: 8.0 / 90, Rounds: numbers(0.08, 8.0/120, 8.0/90)},
		},
	}, found)
	report := Report{Rows: []Row{sample()}}
	require.Equal(t, []string{"sample-1, rate: Berth / best of peer, slow ≥ 0.5"}, report.Missed())
}

func TestABudgetWithoutAValueIsMissed(t *testing.T) {
	r := row.Row{ID: "r", Columns: []string{row.Berth}, Metrics: []row.Metric{{ID: "m", Budgets: []row.Budget{{Limit: 1}}}}}
	require.False(t, NewRow(r, Found{nil}).Metrics[0].Budgets[0].Met)
}

func testReport() Report {
	return Report{
		Machine: Machine{CPUs: 2, Model: "a processor", OS: "linux/amd64", Kernel: "6", Go: "go1", Server: "Redis 7"},
		Date:    "2026-01-02T03:04:05Z", Rounds: 3, For: "1s", Rows: []Row{sample()},
	}
}

func TestText(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, testReport().Text(&out))
	require.Equal(t, `linux/amd64, 2 processors of a processor, kernel 6, go1, Redis 7; 3 rounds of 1s; 2026-01-02T03:04:05Z.
Each number is the median of the rounds, with the range. Ratios are taken round by round.

sample-1: A sample <&>
             Berth              peer               slow               none
  rate (/s)  100 (90.0..120)    200 (100..300)     50.0 (30.0..300)   -
  wait (ms)  4.00 (2.00..5.00)  8.00 (8.00..8.00)  5.00 (5.00..5.00)  -
  own        0 (0..0)           -                  -                  -

  ratio of Berth to  peer               slow               none
  rate               0.50 (0.30..1.20)  2.00 (0.40..3.00)  -
  wait               0.50 (0.25..0.62)  0.80 (0.40..1.00)  -

  * a note
  * none: it cannot

Budgets
  row       metric     budget                            found                verdict
  sample-1  rate (/s)  Berth / best of peer, slow ≥ 0.5  0.40 (0.30..0.50)    missed
  sample-1  rate (/s)  Berth / slow ≤ 3                  2.00 (0.40..3.00)    met
  sample-1  wait (ms)  Berth ≤ 4                         4.00 (2.00..5.00)    met
  sample-1  wait (ms)  Berth / best of slow, peer ≤ 1    0.80 (0.40..1.00)    met
  sample-1  wait (ms)  peer / Berth, rate ≤ 1            0.08 (0.067..0.089)  met
`, out.String())
}

func TestMarkdown(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, testReport().Markdown(&out))
	require.Contains(t, out.String(), `### sample-1: A sample <&>

|  | Berth | peer | slow | none |
| --- | --- | --- | --- | --- |
| rate (/s) | 100 (90.0..120) | 200 (100..300) | 50.0 (30.0..300) | - |
`)
	require.Contains(t, out.String(), "\n\n- a note\n- none: it cannot\n\n### Budgets\n\n| row |")
}

func TestJSONHasEveryRoundAndNullForNone(t *testing.T) {
	report := testReport()
	report.Rows[0].Metrics[0].Values["peer"] = spread([]float64{math.NaN(), 1, math.Inf(1)})
	text, err := json.Marshal(report)
	require.NoError(t, err)
	var got struct {
		Machine struct{ CPUs int }
		Rows    []struct {
			Metrics []struct {
				Values  map[string]struct{ Rounds []*float64 }
				Ratios  map[string]struct{ Median float64 }
				Budgets []struct {
					Text   string
					Median float64
					Met    bool
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal(text, &got))
	require.Equal(t, 2, got.Machine.CPUs)
	rate, one := got.Rows[0].Metrics[0], 1.0
	require.Equal(t, []*float64{nil, &one, nil}, rate.Values["peer"].Rounds)
	require.InDelta(t, 2, rate.Ratios["slow"].Median, 0)
	require.Equal(t, "Berth / slow ≤ 3", rate.Budgets[1].Text)
	require.True(t, rate.Budgets[1].Met)
}

// wellFormed returns the names of all elements.
func wellFormed(t *testing.T, text []byte) []string {
	t.Helper()
	var names []string
	decoder := xml.NewDecoder(bytes.NewReader(text))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return names
		}
		require.NoError(t, err)
		if element, ok := token.(xml.StartElement); ok {
			names = append(names, element.Name.Local)
		}
	}
}

func TestThePictureHasABarForEachColumn(t *testing.T) {
	var out bytes.Buffer
	report := testReport()
	report.Rows[0].Metrics[0].Values["slow"] = spread([]float64{0, 0, 0})
	require.NoError(t, report.SVG(&out))
	names := strings.Join(wellFormed(t, out.Bytes()), " ")
	require.Equal(t, 6, strings.Count(names, "rect"), "two charts of three columns")
	require.Contains(t, out.String(), "A sample &lt;&amp;&gt;: rate (/s); more is better")
	require.Contains(t, out.String(), ">200 (Berth: 0.50 of it)</text>")
	require.NotContains(t, out.String(), "NaN")
	require.NotContains(t, out.String(), "Inf")

	// On decades from 10 to 1000: the bars of 100 and 200 of them are
	// 1/2 and log10(200/10)/2 = 0.6505 of 520 px long, that of nothing is not there.
	require.Contains(t, out.String(), `<rect class="first" x="150" y="30" width="260.0" height="16"/>`)
	require.Contains(t, out.String(), `<rect class="bar" x="150" y="51" width="338.3" height="16"/>`)
	require.Contains(t, out.String(), `<rect class="bar" x="150" y="72" width="0.0" height="16"/>`)
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestAReportThatCannotBeWrittenSaysSo(t *testing.T) {
	require.ErrorIs(t, testReport().Text(full{}), io.ErrShortWrite)
	require.ErrorIs(t, testReport().Markdown(full{}), io.ErrShortWrite)
	require.ErrorIs(t, testReport().SVG(full{}), io.ErrShortWrite)
}
