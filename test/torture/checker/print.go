package checker

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/berth-go/berth/test/torture/history"
)

// String is the text, and the history that shows it: a line for each event, with the
// time in ms since the first, and one for each end of a fault.
func (v Violation) String() string {
	type line struct {
		at    int64
		cells []string
	}
	var lines []line
	for _, e := range v.Events {
		lines = append(lines, line{e.At, cells(e)})
	}
	for _, f := range v.Faults {
		about := strings.TrimSpace(f.Name + " " + f.Process + " " + f.Detail)
		lines = append(lines, line{f.From, []string{"nemesis", "begins", about}}, line{f.To, []string{"nemesis", "ends", about}})
	}
	if len(lines) == 0 {
		return v.Rule + ": " + v.Text
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.at, b.at) })
	zero := lines[0].at
	if len(v.Events) > 0 {
		zero = v.Events[0].At
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s: %s\n", v.Rule, v.Text)
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	for _, l := range lines {
		_, _ = fmt.Fprintf(table, "  %+.3f\t%s\n", float64(l.at-zero)/1e6, strings.Join(l.cells, "\t"))
	}
	_ = table.Flush() // a strings.Builder takes all
	return strings.TrimRight(out.String(), "\n")
}

// cells are the columns of an event: process, kind, operation, name, claim, the rest.
func cells(e history.Event) []string {
	op := e.Do
	switch {
	case e.Op != 0:
		op = strings.TrimSpace(fmt.Sprintf("%s #%d", e.Do, e.Op))
	case e.Hold != 0:
		op = fmt.Sprintf("of #%d", e.Hold)
	}
	what := strings.Trim(e.Primitive+"/"+e.Name, "/")
	if e.Resource != "" {
		what += "/" + e.Resource
	}
	return []string{e.Process, string(e.Kind), op, what, tail(e.Claim), rest(e)}
}

// tail is what tells claims apart: the end of the id.
func tail(claim string) string {
	const shown = 12
	if len(claim) <= shown {
		return claim
	}
	return ".." + claim[len(claim)-shown:]
}

// rest is what an event says beside.
func rest(e history.Event) string {
	var words []string
	for _, w := range []struct {
		label string
		value int64
	}{
		{"fence", e.Fence},
		{"real", e.Real},
		{"weight", int64(e.Weight)},
		{"capacity", int64(e.Capacity)},
		{"priority", int64(e.Priority)},
		{"lease", e.Lease},
		{"bind wait", e.BindWait},
		{"cooldown", e.Cooldown},
	} {
		if w.value != 0 {
			words = append(words, fmt.Sprintf("%s %d", w.label, w.value))
		}
	}
	for _, w := range [][2]string{{"named", e.Named}, {"bind", e.Bind}} {
		if w[1] != "" {
			words = append(words, w[0]+" "+w[1])
		}
	}
	for _, text := range []string{e.Reason, e.Err, e.Detail, strings.Join(e.Left, " ")} {
		if text != "" {
			words = append(words, text)
		}
	}
	if e.Unordered {
		words = append(words, "unordered")
	}
	return strings.Join(words, ", ")
}
