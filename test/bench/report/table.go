package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
)

// table has a header and lines of as many cells.
type table struct {
	header []string
	lines  [][]string
}

// style is how a report is written as text.
type style struct {
	heading func(title string) string
	note    string // what stands before each
	table   func(w io.Writer, t table) error
}

// Text writes the report for a terminal.
func (r Report) Text(w io.Writer) error {
	return r.write(w, style{
		heading: func(title string) string { return title },
		note:    "  * ",
		table: func(w io.Writer, t table) error {
			aligned := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
			for _, line := range append([][]string{t.header}, t.lines...) {
				fmt.Fprintf(aligned, "  %s\n", strings.Join(line, "\t"))
			}
			return aligned.Flush()
		},
	})
}

// Markdown writes the report for the documents, as what stands under a heading there.
func (r Report) Markdown(w io.Writer) error {
	return r.write(w, style{
		heading: func(title string) string { return "### " + title + "\n" },
		note:    "- ",
		table:   markdown,
	})
}

func markdown(w io.Writer, t table) error {
	rule := make([]string, len(t.header))
	for i := range rule {
		rule[i] = "---"
	}
	for _, line := range append([][]string{t.header, rule}, t.lines...) {
		if _, err := fmt.Fprintf(w, "| %s |\n", strings.Join(line, " | ")); err != nil {
			return err
		}
	}
	return nil
}

// Page writes the beginning of docs/generated/benchmarks.md: what became of all budgets. The budgets of
// instructions follow there.
func (r Report) Page(to io.Writer) error {
	w := &sticky{w: to}
	fmt.Fprintf(w, "# What the benchmarks measured\n\n`make bench-docs` wrote this page. [Benchmarks](../benchmarks.md) has what it means.\n\n%s\n", r.where())
	w.fail(markdown(w, r.budgets()))
	return w.err
}

// where says where and when this was measured.
func (r Report) where() string {
	m := r.Machine
	return fmt.Sprintf("%s, %d processors of %s, kernel %s, %s, %s; %d rounds of %s; %s.\n",
		m.OS, m.CPUs, m.Model, m.Kernel, m.Go, m.Server, r.Rounds, r.For, r.Date)
}

func (r Report) write(to io.Writer, s style) error {
	w := &sticky{w: to}
	fmt.Fprint(w, r.where())
	fmt.Fprintf(w, "Each number is the median of the rounds, with the range. Ratios are taken round by round.\n\n")
	for _, o := range r.Rows {
		fmt.Fprintln(w, s.heading(o.ID+": "+o.Title))
		w.fail(s.table(w, o.values()))
		if t := o.ratios(); len(t.lines) > 0 {
			fmt.Fprintln(w)
			w.fail(s.table(w, t))
		}
		if notes := o.notes(); len(notes) > 0 {
			fmt.Fprintln(w)
			for _, note := range notes {
				fmt.Fprintln(w, s.note+note)
			}
		}
		fmt.Fprintln(w)
	}
	if t := r.budgets(); len(t.lines) > 0 {
		fmt.Fprintln(w, s.heading("Budgets"))
		w.fail(s.table(w, t))
	}
	return w.err
}

// sticky keeps the first error of a writer, and writes nothing after it.
type sticky struct {
	w   io.Writer
	err error
}

func (s *sticky) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

func (s *sticky) Write(text []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.w.Write(text)
	s.err = err
	return n, err
}

func (m Metric) heading() string {
	if m.Unit == "" {
		return m.Title
	}
	return m.Title + " (" + m.Unit + ")"
}

// none is the cell of what is not there.
const none = "-"

func cell(spreads map[string]Spread, column string) string {
	if s, ok := spreads[column]; ok {
		return s.String()
	}
	return none
}

func (o Row) values() table {
	t := table{header: append([]string{""}, o.Columns...)}
	for _, m := range o.Metrics {
		line := []string{m.heading()}
		for _, column := range o.Columns {
			line = append(line, cell(m.Values, column))
		}
		t.lines = append(t.lines, line)
	}
	return t
}

func (o Row) ratios() table {
	others := o.Columns[1:]
	t := table{header: []string{"ratio of " + o.Columns[0] + " to"}}
	t.header = append(t.header, others...)
	for _, m := range o.Metrics {
		line := []string{m.Title}
		for _, column := range others {
			line = append(line, cell(m.Ratios, column))
		}
		if slices.ContainsFunc(line[1:], func(c string) bool { return c != none }) {
			t.lines = append(t.lines, line)
		}
	}
	return t
}

func (o Row) notes() []string {
	notes := append([]string(nil), o.Notes...)
	for _, column := range o.Columns {
		if why, ok := o.Skipped[column]; ok {
			notes = append(notes, column+": "+why)
		}
	}
	return notes
}

func (r Report) budgets() table {
	t := table{header: []string{"row", "metric", "budget", "found", "verdict"}}
	for _, o := range r.Rows {
		for _, m := range o.Metrics {
			for _, b := range m.Budgets {
				verdict := "missed"
				if b.Met {
					verdict = "met"
				}
				t.lines = append(t.lines, []string{o.ID, m.heading(), b.Text, b.String(), verdict})
			}
		}
	}
	return t
}

// String is the median, and the range if there were several rounds.
func (s Spread) String() string {
	median := s.Median.String()
	if len(s.Rounds) < 2 || median == none {
		return median
	}
	return fmt.Sprintf("%s (%s..%s)", median, s.Min, s.Max)
}

// String has about three digits.
func (n Number) String() string {
	f := float64(n)
	switch size := math.Abs(f); {
	case math.IsNaN(f):
		return none
	case math.IsInf(f, 0):
		return "∞"
	case size >= 100 || size == 0:
		return fmt.Sprintf("%.0f", f)
	case size >= 10:
		return fmt.Sprintf("%.1f", f)
	case size >= 0.1:
		return fmt.Sprintf("%.2f", f)
	default:
		return fmt.Sprintf("%.2g", f)
	}
}
