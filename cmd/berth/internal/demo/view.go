package demo

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// view shows a story while it happens.
type view interface {
	// tell says that a worker did something, after the story has it.
	tell(at time.Duration, t *turn, what string)
	// draw shows how things stand.
	draw(now time.Duration)
	// end shows how things ended.
	end()
}

// newView returns the view that the options ask for.
func (s *stage) newView(story *story) view {
	if s.opts.Live {
		fmt.Fprint(s.opts.Out, hideCursor)
		return &live{out: s.opts.Out, story: story, width: s.opts.Width, paint: s.paint}
	}
	return &lines{out: s.opts.Out, story: story, width: s.opts.Width, paint: s.paint}
}

// lines is a line for everything that happens, and the picture at the end.
type lines struct {
	out   io.Writer
	story *story
	width int
	paint painter
	last  time.Duration
}

func (v *lines) tell(at time.Duration, t *turn, what string) {
	if v.last == 0 {
		fmt.Fprintln(v.out, heading)
	}
	v.last = max(v.last, at)
	fmt.Fprintln(v.out, sentence(v.story, at, t, what))
}

func (v *lines) draw(time.Duration) {}

func (v *lines) end() {
	fmt.Fprintln(v.out)
	for _, line := range chart(v.story, v.last, v.width, v.paint) {
		fmt.Fprintln(v.out, line)
	}
}

// heading stands above the sentences.
const heading = "   time   inside"

// sentence says what happened, and who is inside since.
func sentence(s *story, at time.Duration, t *turn, what string) string {
	inside := strings.Trim(fmt.Sprint(s.inside(at)), "[]")
	if inside == "" {
		inside = "-"
	}
	worker := fmt.Sprintf("worker %d", t.worker)
	if t.customer != "" {
		worker += " for " + t.customer
	}
	return fmt.Sprintf("%6.2f s   %-6s  %s %s", at.Seconds(), inside, worker, what)
}

// The control sequences of a terminal.
const (
	hideCursor = "\x1b[?25l"
	showCursor = "\x1b[?25h"
	clearLine  = "\x1b[K"
)

// remembered is how many sentences stand below the picture.
const remembered = 6

// Height is how many lines a live picture has at the most, in 59 columns or more.
const Height = 20

// live is a picture that is redrawn in place.
type live struct {
	out    io.Writer
	story  *story
	width  int
	paint  painter
	recent []string
	now    time.Duration
	height int // of what is drawn
}

func (v *live) tell(at time.Duration, t *turn, what string) {
	v.recent = append(v.recent, sentence(v.story, at, t, what))
	v.recent = v.recent[max(0, len(v.recent)-remembered):]
}

func (v *live) draw(now time.Duration) {
	v.now = now
	picture := append(chart(v.story, now, v.width, v.paint), "", heading)
	for i := range remembered {
		line := ""
		if i < len(v.recent) {
			line = cut(v.recent[i], v.width-1)
			if i < len(v.recent)-1 {
				line = v.paint(dim, line)
			}
		}
		picture = append(picture, line)
	}
	v.show(picture)
}

// show writes lines over those shown before, in one piece, so that nothing
// flickers.
func (v *live) show(picture []string) {
	var b strings.Builder
	if v.height > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", v.height)
	}
	for _, line := range picture {
		b.WriteString("\r" + line + clearLine + "\n")
	}
	v.height = len(picture)
	fmt.Fprint(v.out, b.String())
}

func (v *live) end() {
	v.draw(v.now)
	fmt.Fprint(v.out, showCursor)
}

// cut shortens a text to a number of characters.
func cut(text string, width int) string {
	runes := []rune(text)
	return string(runes[:min(len(runes), max(0, width))])
}
