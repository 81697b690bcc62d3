package pool

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"pgregory.net/rapid"

	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/internal/testkit"
)

// view is what the server has of a pool.
type view struct {
	state, items, bindings map[string]string
	values, line           map[string]int64
	free                   []string
}

// width is that of a range of scores; see scripts/state/score.lua.
const width = int64(state.Width)

func (d *driver) look(t *rapid.T) view {
	t.Helper()
	v := view{line: map[string]int64{}}
	for n, fields := range map[int]*map[string]string{0: &v.state, 2: &v.items, 4: &v.bindings} {
		all, err := d.do(t, "HGETALL", d.keys[n]).AsStrMap()
		if err != nil {
			t.Fatal(err)
		}
		*fields = all
	}
	if len(v.state) > 0 {
		values, err := testkit.Counts(v.state["v"])
		if err != nil {
			t.Fatal(err)
		}
		v.values = values
	}
	scores, err := d.do(t, "ZRANGE", d.keys[1], "0", "-1", "WITHSCORES").AsZScores()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range scores {
		v.line[s.Member] = int64(s.Score)
	}
	free, err := d.do(t, "ZRANGE", d.keys[3], "0", "-1").AsStrSlice()
	if err != nil {
		t.Fatal(err)
	}
	v.free = free
	return v
}

func (v *view) item(key string) item {
	text := v.items["i"+key]
	words := strings.SplitN(text, " ", 8)
	n := make([]int64, 7)
	for i := range n {
		n[i], _ = strconv.ParseInt(words[i], 10, 64)
	}
	i := item{max: int(n[0]), expiry: n[1], ends: n[2], pend: n[3], rev: n[4], leaving: n[5]&1 == 1, reason: words[7]}
	if n[5]&2 == 2 {
		i.own = cmp.Or(v.state["s:"+key], "none")
	}
	for range n[6] {
		claim, rest, _ := strings.Cut(i.reason, " ")
		i.claims, i.reason = append(i.claims, claim), rest
	}
	return i
}

// check compares the server with the model, and both with the laws.
func (d *driver) check(t *rapid.T) {
	d.tick(t)
	if d.fault != "" {
		t.Fatal(d.fault)
	}
	if broken := d.broken(); broken != "" {
		t.Fatal(broken)
	}
	if !d.alone() {
		d.view = d.look(t)
		d.checkItems(t)
		d.checkLine(t)
		d.checkState(t)
		d.checkCounts(t)
		d.checkKeys(t)
		d.inspect(t, "10000")
		d.reads(t)
		d.checkPushes(t)
	}
	d.granted, d.handed, d.came, d.arrived, d.reclaimed = nil, nil, nil, nil, false
	clear(d.absent)
}

func (d *driver) checkItems(t *rapid.T) {
	for key, i := range d.items {
		if _, ok := d.view.items["i"+key]; !ok {
			t.Fatalf("%q is not there, in the model %+v", key, *i)
		}
		if got := d.view.item(key); fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", *i) {
			t.Fatalf("%q is %+v, in the model %+v", key, got, *i)
		}
	}
	for field := range d.view.items {
		if field != "v" && (field[0] != 'i' || d.items[field[1:]] == nil) {
			t.Fatalf("%q should not be there: %q", field, d.view.items[field])
		}
	}
	d.checkBindings(t)
	want := slices.Clone(d.free)
	if len(d.view.state) > 0 {
		want = append(want, "") // so that it is never empty
	}
	if !slices.Equal(d.view.free, want) {
		t.Fatalf("free are %q, in the model %q", d.view.free, want)
	}
}

func (d *driver) checkBindings(t *rapid.T) {
	want := map[string]string{}
	if len(d.view.bindings) > 0 {
		want["v"] = "1"
	}
	for name, b := range d.binds {
		want["b"+name] = dec(b.ends) + " " + b.key
	}
	if !maps.Equal(d.view.bindings, want) {
		t.Fatalf("the bindings are %q, in the model %q", d.view.bindings, want)
	}
}

func (d *driver) checkLine(t *rapid.T) {
	want := map[string]int64{"-": 1<<53 - 1}
	if len(d.view.state) == 0 {
		clear(want)
	}
	put := func(member string, on bool, score int64) {
		if on {
			want[member] = score
		}
	}
	for id, c := range d.claims {
		put("h:"+id, c.deadline > 0, width+c.deadline)
		if c.alive > 0 {
			member, score, place := d.stands(c)
			want[member] = score
			put("p:"+id, c.until > 0, 257*width+c.until)
			text := waits(c, place)
			if got := d.view.state["c:"+id]; got != text {
				t.Fatalf("%s waits by %q, in the model by %q", id, got, text)
			}
		}
		if c.deadline > 0 {
			phase, _, _ := strings.Cut(d.view.state["c:"+id], " ")
			if _, since, _ := strings.Cut(phase, "!"); since != strings.TrimPrefix(dec(c.wanted), "0") {
				t.Fatalf("%s is wanted since %q, in the model since %d", id, since, c.wanted)
			}
		}
		put("t:"+id, c.stone != "", 260*width+c.forgotten)
		if got := d.view.state["r:"+id]; got != c.resource {
			t.Fatalf("%s holds %q, in the model %q", id, got, c.resource)
		}
		if _, known := d.view.state["c:"+id]; known != c.known {
			t.Fatalf("%s is known %v, in the model %v", id, known, c.known)
		}
	}
	for key, i := range d.items {
		put("e:"+key, i.ends > 0, 262*width+i.ends)
		put("x:"+key, i.expiry > 0 && !i.leaving, 264*width+i.expiry)
		put("x:"+key, i.leaving, 264*width+forever)
	}
	for key := range d.lanes {
		put("w:"+key, d.looks(key) > 0, 258*width+d.looks(key))
		if at, ok := d.view.line["w:"+key]; ok && d.paused > 0 && at <= 258*width+d.now {
			want["w:"+key] = at // it is looked at once the pause is over
		}
	}
	for target, o := range d.changed {
		put("o:"+target, true, 256*width+o.until)
		if got, text := d.view.state["o:"+target], fmt.Sprintf("%d %s %s", o.rev, o.by, o.what); got != text {
			t.Fatalf("%q was changed by %q, in the model by %q", target, got, text)
		}
	}
	for name, b := range d.binds {
		put("u:"+name, b.ends < forever, 266*width+b.ends)
	}
	for member, score := range d.view.line {
		if at, ok := want[member]; !ok || at != score {
			t.Fatalf("%q is at %d, in the model at %d", member, score, want[member])
		}
	}
	if len(want) != len(d.view.line) {
		t.Fatalf("the line is %v, in the model %v", d.view.line, want)
	}
}

// checkState: the state says who waits for which resource, has a number for each lane, and what each
// resource has of its own.
func (d *driver) checkState(t *rapid.T) {
	want := map[string]string{}
	for key, number := range d.lanes {
		want["l:"+key] = dec(number)
		if number < 512 || number >= width {
			t.Fatalf("the lane of %q has the number %d", key, number)
		}
	}
	for key, i := range d.items {
		if i.own != "" {
			want["s:"+key] = i.own
		}
	}
	for _, c := range d.queue() {
		if c.lane == "" {
			continue
		}
		until := dec(c.until)
		if c.only != "" {
			until = "-"
		}
		want["q:"+c.id] = until + " " + c.lane
	}
	if p := d.pausing; p.by != "" {
		want["pause"] = p.text()
	}
	got := maps.Clone(d.view.state)
	maps.DeleteFunc(got, func(field, _ string) bool {
		return field != "pause" && !slices.Contains([]string{"l:", "q:", "s:"}, field[:min(len(field), 2)])
	})
	if !maps.Equal(got, want) {
		t.Fatalf("the lanes and settings are %q, in the model %q", got, want)
	}
}

func (d *driver) checkCounts(t *rapid.T) {
	held, waiting, stones := d.holds()
	leased, leaving, resting, plain := 0, 0, 0, true
	for _, i := range d.items {
		if len(i.claims) > 0 {
			leased++
		} else if i.ends > 0 {
			resting++
		}
		if i.leaving {
			leaving++
		}
		plain = plain && i.max == 1
	}
	if plain && len(d.free)+leased+resting != len(d.items) {
		t.Fatalf("%d free + %d leased + %d resting are not %d", len(d.free), leased, resting, len(d.items))
	}
	if len(d.view.state) == 0 {
		return
	}
	endless, due, keep := 0, int64(0), 0
	for _, c := range d.claims {
		if c.deadline > 0 && c.lease == 0 && c.most == 0 && c.phase != 'g' {
			endless++
		} else if c.deadline > 0 && (due == 0 || c.deadline < due) {
			due = c.deadline
		}
	}
	if d.stays() {
		keep = 1
	}
	for word, want := range map[string]int64{
		"fmt": 3, "fence": d.fence, "due": due, "ticket": d.ticket, "cap": 1, "used": int64(held), "waiting": int64(waiting),
		"gone": int64(stones), "forever": int64(endless), "keep": int64(keep), "look": int64(d.looked), "rev": d.rev, "pause": d.paused,
	} {
		if got := d.view.values[word]; got != want && (word != "pause" || want != 0 || got > d.now) {
			t.Fatalf("%s is %d, in the model %d", word, got, want)
		}
	}
	counts, err := state.ParseCounts(d.view.state["pool"], int64(held))
	if err != nil {
		t.Fatal(err)
	}
	want := state.Counts{
		Free: int64(len(d.free)), Leased: int64(leased), Parked: int64(d.parked()), Leaving: int64(leaving),
		Resources: int64(len(d.items)), Generation: d.gen, Filled: d.filled, Settings: d.set.text(),
	}
	if counts != want {
		t.Fatalf("the counts are %+v, in the model %+v", counts, want)
	}
}

// waits is the record of a claim that waits at a place.
func waits(c *claim, place string) string {
	ticket := fmt.Sprintf("%013d", c.ticket)
	head := fmt.Sprintf("%013d %013d %s ", c.alive, c.alive-c.wait/2, ticket)
	if place != ticket {
		return "p " + head + place + " " + c.node + " " + c.terms
	}
	return "w " + head + c.node + " " + c.terms
}
