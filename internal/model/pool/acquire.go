package pool

import (
	"strings"

	"pgregory.net/rapid"

	"github.com/berth-go/berth/internal/line"
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
	args := []string{asker, c.id, digit(may), line.Lane(c.priority), c.terms, "", "", pattern}
	if told = d.agreed[pattern]; told != "" && pattern != "" {
		args = append(args, told)
	}
	r := d.run(t, "pool_acquire", args...)
	want := d.model.acquire(c, asker, may, says, told)
	if r.Status() == "joined" {
		want = []any{"joined", want[1], want[8], want[9], want[4], want[5]}
	}
	if r.Status() == "plain" {
		want = []any{"plain", want[2], want[6], want[5]}
	}
	if at := map[string]int{"granted": 7, "queued": 10}[r.Status()]; at > 0 && r.Len() > at && r.Str(at) != "" {
		d.agreed[pattern] = r.Str(at)
	}
	d.same(t, "acquire", &r, want...)
	if want[0] == "queued" || want[0] == "joined" {
		c.told = standing{text: c.place, lane: c.lane, place: c.place, until: c.until, ticket: c.ticket}
		if r.Status() == "queued" {
			c.told.text = r.Str(7)
		}
	}
}
