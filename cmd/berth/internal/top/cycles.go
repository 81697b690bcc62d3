package top

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/pkg/inspect"
)

// cycleScreen shows claims that wait for each other.
type cycleScreen struct {
	listing[link]
	found inspect.Cycles
}

// link is a row of a cycle: a heading, a claim that waits, or a hold whose end would free all.
type link struct {
	says string
	inspect.Claim
}

func (s *cycleScreen) subject() subject { return subject{topic: cycles} }

func (s *cycleScreen) read(_ *model, r reading) {
	s.found, _ = r.value.(inspect.Cycles)
	var all []entry[link]
	for i, c := range s.found.Cycles {
		all = append(all, linksOf(i+1, c)...)
	}
	s.rows.set(all, true)
}

// linksOf are the rows of a cycle.
func linksOf(number int, c inspect.Cycle) []entry[link] {
	head := func(says string) entry[link] {
		return entry[link]{key: fmt.Sprint(number, says), value: link{says: says}, head: true}
	}
	all := []entry[link]{head(fmt.Sprintf("Cycle %d, by %s: %s.", number, text.Plain(c.By), view.CycleSays(c)))}
	for _, l := range c.Links {
		all = append(all, entry[link]{key: "wait " + string(l.Wait.Kind) + " " + l.Wait.ID(), value: link{view.LinkSays(l) + ".", l.Wait}})
	}
	end := view.EndSays(c)
	if c.Behind > 0 {
		end += fmt.Sprintf(" Behind it: %s more.", view.Count(c.Behind, "claim"))
	}
	all = append(all, head(end))
	if len(c.Release) > 0 {
		all = append(all, head(map[bool]string{true: "To end it, release this hold, the youngest:", false: "To end it, release all of these holds:"}[len(c.Release) == 1]))
	}
	for _, c := range c.Release {
		says := fmt.Sprintf("%s, held for %s by %s", c, text.Human(c.For()), view.Actor(cmp.Or(c.Owner(), c.Label(), c.ID()), c.Label()))
		all = append(all, entry[link]{key: "hold " + string(c.Kind) + " " + c.ID(), value: link{says + ".", c}})
	}
	return all
}

// cycleText says of a cycle that a name is in who is in it, and what ends it, at a moment by the server's clock.
func cycleText(c *inspect.Cycle, now time.Time) string {
	var links []string
	for _, l := range c.Links {
		links = append(links, view.LinkSays(l))
	}
	sure := map[bool]string{true: "certain", false: "possible"}[c.Certain]
	first := c.Links[0].Wait
	ago := age(now.Sub(first.Since().Add(first.For()))) // it was found
	return fmt.Sprintf("A cycle, by %s, %s, %s ago: %s. %s", text.Plain(c.By), sure, ago, strings.Join(links, "; "), view.EndSays(*c))
}

func (s *cycleScreen) target() target {
	e, _ := s.rows.selected()
	return targetOf(e.value.Claim, e.gone)
}

func (s *cycleScreen) title(*model) string { return "Cycles: claims that wait for each other" }

func (s *cycleScreen) keys(*model) string {
	return "enter opens   r release   d drain   n node   esc back   ? help"
}

func (s *cycleScreen) draw(m *model, height int) []string {
	p := m.paper
	says := []string{fmt.Sprintf("%s found among %s that somebody waits for, %s ago",
		view.Count(len(s.found.Cycles), "cycle"), view.Count(s.found.Names, "name"), age(m.now.Sub(s.at)))}
	if s.found.Skipped > 0 {
		says = append(says, view.Count(s.found.Skipped, "owner")+" with several waits at once left out")
	}
	if s.found.Partial {
		says = append(says, "there is more that was not read")
	}
	lines := p.few(p.wrap(strings.Join(says, "; "), p.width), 2, p.width)
	return append(lines, s.rows.draw(height-len(lines), func(e entry[link], selected bool) []string {
		return linkLines(p, e, selected)
	})...)
}

// linkLines draws a row, in as many lines as it takes.
func linkLines(p paper, e entry[link], selected bool) []string {
	if e.head {
		lines := p.wrap(e.value.says, p.width)
		for i := range lines {
			lines[i] = p.in(strong, lines[i])
		}
		return lines
	}
	says, look, mark := e.value.says, plain, "  "
	if e.gone {
		says, look = "No longer of a cycle: "+says, faint
	}
	if selected {
		look, mark = reversed, marker
	}
	lines := p.wrap(says, p.width-len(marker))
	for i := range lines {
		lines[i] = p.in(look, mark+p.fill(lines[i], p.width-len(marker)))
	}
	return lines
}
