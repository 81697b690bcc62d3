package pool

import (
	"fmt"
	"strings"

	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/scriptkit"

	"pgregory.net/rapid"
)

// acquire asks with a new claim, or again with an old one.
func (d *driver) acquire(t *rapid.T) {
	if len(d.ids) > 0 && rapid.IntRange(0, 3).Draw(t, "again") == 0 {
		c := d.old(t)
		d.ask(t, c, c.kind != "a" && rapid.IntRange(0, 3).Draw(t, "try") > 0)
		return
	}
	d.wish = pickOf(t, "wish", "any", "any", "named", "bound")
	c := d.claim(t)
	may := rapid.IntRange(0, 3).Draw(t, "try") > 0 || d.busy && rapid.Bool().Draw(t, "wait")
	if !may && c.only != "" && rapid.Bool().Draw(t, "alone") {
		c.kind = "a" // a check of health never waits
		c.terms = d.terms(c)
	}
	d.ask(t, c, may)
}

// ask has a claim's own node ask.
func (d *driver) ask(t *rapid.T, c *claim, may bool) {
	asker := strings.Split(c.id, ".")[0]
	says := d.says(t)
	says.words[setSharers] = "" // that is for an add to fill in
	pattern, told := says.pattern(), ""
	if pattern != "" {
		told = d.agreed[pattern]
	}
	anew := *c
	anew.lease, anew.renews = c.asked.lease, c.asked.renews
	r := d.runs(t, "pool_acquire", asker, d.asking(t, asker).Acquire(c.id, d.record(&anew), digit(may), "-", pattern, told))
	want := d.model.acquire(c, asker, may, says, told)
	asked := want[0]
	if r.Status() == scriptkit.Plain {
		want = plainly(want, r.Str(1))
	}
	if at := map[string]int{"granted": 7, "queued": 10}[r.Status()]; at > 0 && r.Len() > at && r.Str(at) != "" {
		d.agreed[pattern] = r.Str(at)
	}
	d.same(t, "acquire", &r, want...)
	if asked == "queued" {
		c.told = standing{text: c.place, lane: c.lane, place: c.place, until: c.until, ticket: c.ticket}
		if r.Status() == "queued" {
			c.told.text = r.Str(7)
		}
	}
}

// plainly is what the model says as the plain case says it.
func plainly(want []any, said string) []any {
	setting, _ := want[5].(int)
	text := fmt.Sprintf("%v %v %v", want[2], setting+state.Base, want[6])
	if want[0] == "queued" {
		words := strings.Fields(said)
		first, next := words[1], want[9]
		if next == nil {
			next = words[2]
		}
		if f, loose := want[4].(flags); !loose || f.loose&flagFirst == 0 {
			n, _ := want[4].(int)
			first = digit((n|f.set)&flagFirst != 0)
		}
		text = fmt.Sprintf("%v %s %v %v %v", want[1], first, next, want[8], setting+state.Base)
	}
	return []any{scriptkit.Plain, text}
}
