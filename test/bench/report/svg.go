package report

import (
	"fmt"
	"html"
	"io"
	"math"
)

// The picture's measures, in px.
const (
	pictureWidth = 860
	labelWidth   = 150
	barsWidth    = 520
	barHeight    = 16
	barGap       = 5
	chartHead    = 30
	chartFoot    = 34
)

const pictureStyle = `<style>
text { font: 12px system-ui, sans-serif; fill: #24292f }
.title { font-weight: 600 }
.small { font-size: 10px; fill: #6e7781 }
.grid { stroke: #d0d7de; stroke-width: 1 }
.bar { fill: #8c959f }
.first { fill: #0969da }
.range { stroke: #24292f; stroke-width: 1.5 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .small { fill: #8b949e }
  .grid { stroke: #30363d }
  .bar { fill: #6e7681 }
  .first { fill: #4493f8 }
  .range { stroke: #e6edf3 }
}
</style>
`

// chart is one metric's bars on a logarithmic axis of whole decades.
type chart struct {
	title    string
	columns  []string // those that have a value
	metric   Metric
	low, end int // powers of 10
}

// SVG writes the picture: every metric that is to be drawn, a bar for each column. It has
// no background, and text for light and dark ones.
func (r Report) SVG(to io.Writer) error {
	w := &sticky{w: to}
	charts := r.charts()
	height := 0
	for _, c := range charts {
		height += c.height()
	}
	fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">`+"\n",
		pictureWidth, height, pictureWidth, height)
	fmt.Fprintf(w, "<title>Berth and its peers, logarithmic axes</title>\n%s", pictureStyle)
	y := 0
	for _, c := range charts {
		c.draw(w, y)
		y += c.height()
	}
	fmt.Fprintln(w, "</svg>")
	return w.err
}

func (r Report) charts() []chart {
	var charts []chart
	for _, o := range r.Rows {
		for _, m := range o.Metrics {
			if !m.picture {
				continue
			}
			better := "less is better"
			if m.HigherIsBetter {
				better = "more is better"
			}
			c := chart{title: fmt.Sprintf("%s: %s; %s", o.Title, m.heading(), better), metric: m}
			least, most := math.Inf(1), 0.0
			for _, column := range o.Columns {
				v, ok := m.Values[column]
				if !ok || math.IsNaN(float64(v.Median)) {
					continue
				}
				c.columns = append(c.columns, column)
				if v.Median > 0 {
					least = min(least, max(float64(v.Min), float64(v.Median)/10))
				}
				most = max(most, float64(v.Max))
			}
			if math.IsInf(least, 1) || math.IsInf(most, 1) {
				continue
			}
			// The least bar is to be seen too.
			c.low = int(math.Floor(math.Log10(least) - 0.3))
			c.end = max(int(math.Ceil(math.Log10(most))), c.low+1)
			charts = append(charts, c)
		}
	}
	return charts
}

func (c chart) height() int { return chartHead + len(c.columns)*(barHeight+barGap) + chartFoot }

// x is where a value lies; one that is too small for the axis lies at its beginning.
func (c chart) x(value Number) float64 {
	share := (math.Log10(float64(value)) - float64(c.low)) / float64(c.end-c.low)
	return labelWidth + max(share, 0)*barsWidth
}

func (c chart) draw(w io.Writer, y int) {
	fmt.Fprintf(w, `<text class="title" x="0" y="%d">%s</text>`+"\n", y+16, html.EscapeString(c.title))
	top := y + chartHead
	bottom := top + len(c.columns)*(barHeight+barGap)
	for power := c.low; power <= c.end; power++ {
		value := Number(math.Pow10(power))
		fmt.Fprintf(w, `<line class="grid" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/>`+"\n", c.x(value), top-4, c.x(value), bottom)
		fmt.Fprintf(w, `<text class="small" x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", c.x(value), bottom+12, value)
	}
	for i, column := range c.columns {
		v, class := c.metric.Values[column], "bar"
		if i == 0 {
			class = "first"
		}
		barTop := top + i*(barHeight+barGap)
		middle := float64(barTop) + barHeight/2.0
		fmt.Fprintf(w, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", labelWidth-8, barTop+12, html.EscapeString(column))
		fmt.Fprintf(w, `<rect class="%s" x="%d" y="%d" width="%.1f" height="%d"/>`+"\n",
			class, labelWidth, barTop, c.x(v.Median)-labelWidth, barHeight)
		fmt.Fprintf(w, `<line class="range" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`+"\n", c.x(v.Min), middle, c.x(v.Max), middle)
		label := v.Median.String()
		if ratio, ok := c.metric.Ratios[column]; ok {
			label += fmt.Sprintf(" (%s: %s of it)", c.columns[0], ratio.Median)
		}
		fmt.Fprintf(w, `<text x="%.1f" y="%d">%s</text>`+"\n", c.x(v.Max)+6, barTop+12, html.EscapeString(label))
	}
}
