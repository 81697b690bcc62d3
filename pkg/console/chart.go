package console

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/internal/watch"
)

// The measures of a drawing, in its own units.
const (
	drawWide = 600.0
	drawHigh = 140.0
	laneHigh = 16.0
	// lanesMost is how many rows a timeline has.
	lanesMost = 24
	// chartShown is how much time a chart shows at the least, holdsLeast and holdsMost what a timeline shows.
	chartShown, holdsLeast, holdsMost = 10 * time.Second, time.Minute, 15 * time.Minute
)

// chart is what was held and waiting over the time.
type chart struct {
	Held, Waiting, Capacity string // paths
	Top                     int    // what the upper edge means
	From, To                time.Time
	Says                    string
}

// window is the time that a drawing shows.
func window(n *watch.Name, least time.Duration) (from, to time.Time) {
	from, to = n.Since, n.At
	if to.Sub(from) < least {
		from = to.Add(-least)
	}
	return from, to
}

func chartOf(n *watch.Name) chart {
	c := chart{}
	c.From, c.To = window(n, chartShown)
	if len(n.History) == 0 {
		return c
	}
	least, most, waited := n.History[0].Held, 0, 0
	for _, s := range n.History {
		c.Top = max(c.Top, s.Held, s.Waiting, s.Capacity)
		least, most, waited = min(least, s.Held), max(most, s.Held), max(waited, s.Waiting)
	}
	c.Top = max(1, c.Top)
	c.Held = c.steps(n, func(s watch.Sample) int { return s.Held })
	c.Waiting = c.steps(n, func(s watch.Sample) int { return s.Waiting })
	c.Capacity = c.steps(n, func(s watch.Sample) int { return s.Capacity })
	held := fmt.Sprintf("held between %d and %d of %d, now %d", least, most, n.Capacity, n.Held)
	if least == most {
		held = fmt.Sprintf("held %d of %d", most, n.Capacity)
	}
	c.Says = fmt.Sprintf("Since %s UTC: %s; waiting at most %d, now %d.", clock(n.Since), held, waited, n.Live())
	return c
}

// steps is a line that changes only where the count has.
func (c *chart) steps(n *watch.Name, count func(watch.Sample) int) string {
	var b strings.Builder
	last := -1
	for i, s := range n.History {
		v := count(s)
		x, y := share(c.From, c.To, s.At), drawHigh*(1-float64(v)/float64(c.Top))
		switch {
		case i == 0:
			fmt.Fprintf(&b, "M%.1f %.1f", x, y)
		case v != last:
			fmt.Fprintf(&b, "H%.1fV%.1f", x, y)
		}
		last = v
	}
	fmt.Fprintf(&b, "H%.1f", drawWide)
	return b.String()
}

// share is where a moment stands in a window.
func share(from, to, at time.Time) float64 {
	if !to.After(from) {
		return 0
	}
	return min(drawWide, max(0, drawWide*float64(at.Sub(from))/float64(to.Sub(from))))
}

// timeline are the holds of a name as bars.
type timeline struct {
	Lanes    []lane
	Height   float64
	From, To time.Time
	Left     int // how many holds are not shown
	Says     string
}

// lane is a row of bars that do not overlap.
type lane struct {
	Name string // of the resource, "" where there is none
	Y    float64
	Bars []bar
	end  time.Time
}

// bar is a hold.
type bar struct {
	X, Wide float64
	Ended   bool
	Says    string
	Text    string // "" where there is no room
}

// Below is where the scale stands.
func (t timeline) Below() float64 { return t.Height + 18 }

// TextX is where the text of a bar begins.
func (b bar) TextX() float64 { return b.X + 4 }

func timelineOf(n *watch.Name) timeline {
	t := timeline{}
	if t.From, t.To = window(n, holdsLeast); t.To.Sub(t.From) > holdsMost {
		t.From = t.To.Add(-holdsMost)
	}
	shown := 0
	for _, s := range n.Spans {
		if s.To.Before(t.From) {
			continue
		}
		l := t.lane(s)
		if l == nil {
			t.Left++
			continue
		}
		l.end = s.To
		if !s.Ended {
			l.end = t.To.Add(time.Hour)
		}
		l.Bars = append(l.Bars, t.bar(s))
		shown++
	}
	slices.SortStableFunc(t.Lanes, func(a, b lane) int { return cmp.Compare(a.Name, b.Name) })
	for i := range t.Lanes {
		t.Lanes[i].Y = float64(i) * (laneHigh + 4)
	}
	t.Height = max(laneHigh, float64(len(t.Lanes))*(laneHigh+4))
	t.Says = fmt.Sprintf("%s between %s and %s UTC, as they were seen.", view.Count(shown, "hold"), clock(t.From), clock(t.To))
	return t
}

// lane is one in which a hold has room, nil if there is none.
func (t *timeline) lane(s watch.Span) *lane {
	for i := range t.Lanes {
		if l := &t.Lanes[i]; l.Name == s.Resource && !l.end.After(s.Granted) {
			return l
		}
	}
	if len(t.Lanes) == lanesMost {
		return nil
	}
	t.Lanes = append(t.Lanes, lane{Name: s.Resource})
	return &t.Lanes[len(t.Lanes)-1]
}

func (t *timeline) bar(s watch.Span) bar {
	from, to := share(t.From, t.To, s.Granted), share(t.From, t.To, s.To)
	who := view.Who(s.Label, s.Owner, s.ID)
	b := bar{X: from, Wide: max(2, to-from), Ended: s.Ended}
	b.Says = fmt.Sprintf("%s, from %s UTC for %s", who, clock(s.Granted), text.Human(s.To.Sub(s.Granted)))
	if s.Resource != "" {
		b.Says += ", " + text.Plain(s.Resource)
	}
	if !s.Ended {
		b.Says += ", goes on"
	}
	if room := int((b.Wide - 8) / 6.6); room >= 4 {
		b.Text = cut(who, room)
	}
	return b
}

// cut is a text in as many characters as there is room for.
func cut(s string, room int) string {
	all := []rune(s)
	if len(all) <= room {
		return s
	}
	return string(all[:room-1]) + "…"
}
