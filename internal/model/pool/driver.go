package pool

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
	"pgregory.net/rapid"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// World is where the model runs.
type World struct {
	// Redis runs the scripts, and looks on; with nil the model runs alone, by its own laws.
	Redis rueidis.Client
	// Scripts are those that are run.
	Scripts *scriptkit.Library
	// General, nil for none, are the scripts without their plain cases: they do the same on a
	// copy of the pool, to the byte.
	General *scriptkit.Library
	// Space and Name are a pool that nobody has used yet.
	Space keyspace.Space
	Name  string
	// Heard is what the scripts publish in Space.
	Heard *Pushes
	// Now is the time that the scripts read. It stands still but for Advance, which
	// lets time pass, and those of the keys expire whose time comes then.
	Now     func() time.Time
	Advance func(d time.Duration, keys ...string)
}

const lingerMS = "2000"

// secret is that of all claims.
const secret = "secret-of-1"

// oddKeys are resources and names of bindings: any bytes will do.
var oddKeys = []string{"r", "|b", "a|", "v", "n", "7", " x y", "\n", "\x00", "\xff\xfe", "e:1", "#ALLOCATED"}

// The nodes have ids of 16 digits, as nodes draw them.
const (
	nodeA = "a000000000000000"
	nodeB = "b000000000000000"
	nodeC = "c000000000000000"
)

// boundNames are the names of bindings.
var boundNames = []string{"v", "\xff \n", "|"}

// driver runs the pool's scripts as clients would that lose, repeat and mix up their
// calls, and the model beside them.
type driver struct {
	World
	*model
	runner *scriptkit.Runner
	prefix string
	keys   []string
	made   int
	random bool     // some claims draw their resource: such a run cannot be repeated
	busy   bool     // only what lines are about, and many wait
	plain  bool     // the next claim asks for nothing special
	wish   string   // what the next claim asks for: any, named or bound
	some   []string // the resources that this history is about
	ids    []string
	begun  int // how many operators' calls
	view   view
	marks  bool              // a lane was to be looked at before the run
	told   map[string]int64  // by node: when a place may next become free, for all it knows
	others []opinion         // what processes say of the settings
	agreed map[string]string // by opinion: the settings that its process was told of
}

// Run takes the scripts of a pool through one random history.
func Run(t *rapid.T, w World) {
	d := newDriver(w)
	if !d.alone() {
		w.Heard.take(t) // what a run that failed has left
		defer d.do(t, append([]string{"DEL"}, d.keys...)...)
	}
	d.random, d.busy = rapid.Bool().Draw(t, "random") && d.General == nil, rapid.Bool().Draw(t, "busy")
	d.opinions(t)
	// A history about few resources comes to what one about many never does.
	many := pickOf(t, "many", 1, 2, 4, len(oddKeys))
	from := rapid.IntRange(0, len(oddKeys)-many).Draw(t, "from")
	d.some = oddKeys[from : from+many]
	actions := map[string]func(*rapid.T){
		"":        d.check,
		"acquire": d.acquire, "acquire2": d.acquire, "release": d.release, "force": d.force, "renew": d.renew,
		"swap": d.swap, "pass": d.pass, "sweep": d.sweeps, "rest": d.rests, "bind": d.ties,
		"add": func(t *rapid.T) { d.add(t, 0) }, "read": d.read, "set": d.sets, "pause": d.pauses, "want": d.want,
	}
	if d.busy {
		actions["release2"], actions["pass2"] = d.release, d.pass
		d.add(t, 0)
	} else {
		actions["add of a replace"] = func(t *rapid.T) { d.add(t, max(1, d.gen-rapid.Int64Range(0, 1).Draw(t, "older"))) }
		actions["remove"], actions["begin"], actions["prune"], actions["resume"] = d.removes, d.starts, d.prunes, d.resume
		actions["walk"], actions["damage"] = d.walks, d.damages
		actions["flush"], actions["again"], actions["read2"] = d.flush, d.again, d.read
	}
	if d.General != nil {
		d.everyWay(t)
		for n := range 6 {
			actions[fmt.Sprint("come and go", n)] = d.comeAndGo
		}
	}
	t.Repeat(actions)
}

func newDriver(w World) *driver {
	d := &driver{World: w, told: map[string]int64{}, agreed: map[string]string{}}
	d.model = newModel(server{drawn: d.drawnFor, left: d.stillLists, dropped: d.hasDropped, number: d.numberOf, saved: d.keptOf, marked: d.hasMarks})
	if d.alone() {
		d.keys = make([]string, 5)
		return d
	}
	d.prefix, d.runner = w.Space.Wake(""), scriptkit.NewRunner(w.Redis, scriptkit.Options{CallTimeout: testkit.Patience})
	for _, part := range []string{
		keyspace.StatePart, keyspace.LinePart, keyspace.ItemsPart, keyspace.FreePart, keyspace.BindingsPart,
	} {
		d.keys = append(d.keys, w.Space.Key(keyspace.Pool, w.Name, part))
	}
	return d
}

// alone says that there is no server.
func (d *driver) alone() bool { return d.Redis == nil }

// do runs a command; one that fails fails the run, so that it is made short.
func (d *driver) do(t *rapid.T, words ...string) rueidis.RedisResult {
	t.Helper()
	if d.alone() {
		return rueidis.RedisResult{}
	}
	r := d.Redis.Do(context.Background(), d.Redis.B().Arbitrary(words...).Build())
	if err := r.Error(); err != nil && !rueidis.IsRedisNil(err) {
		t.Fatal(err)
	}
	return r
}

// number runs a command that answers a number.
func (d *driver) number(t *rapid.T, words ...string) int64 {
	t.Helper()
	n, err := d.do(t, words...).AsInt64()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// call runs a script.
func (d *driver) call(t *rapid.T, keys []string, script string, args ...string) scriptkit.Reply {
	t.Helper()
	return d.evaluate(t, d.Scripts, keys, script, args)
}

func (d *driver) evaluate(t *rapid.T, from *scriptkit.Library, keys []string, script string, args []string) scriptkit.Reply {
	t.Helper()
	if d.alone() {
		return scriptkit.Reply{}
	}
	r, err := d.runner.Run(context.Background(), from.Script(script), scriptkit.Once, keys, args)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// run runs a script that writes the pool, looks at what it left, and sets the model's
// clock.
func (d *driver) run(t *rapid.T, script string, args ...string) scriptkit.Reply {
	t.Helper()
	return d.runs(t, script, args[0], append([]string{lingerMS, d.prefix, d.Name}, args...))
}

// asking is what a node says in an acquire and a release.
func (d *driver) asking(t *rapid.T, node string) *line.Args {
	t.Helper()
	linger, err := strconv.ParseInt(lingerMS, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return &line.Args{Node: node, Channel: d.prefix, Name: d.Name, Linger: linger}
}

// runs runs a script with all its arguments for a node.
func (d *driver) runs(t *rapid.T, script, node string, whole []string) scriptkit.Reply {
	t.Helper()
	d.tick(t)
	if script != "pool_sweep" {
		d.over(t)
	}
	d.marks = false
	for member, at := range d.view.line {
		d.marks = d.marks || strings.HasPrefix(member, "w:") && at <= 258*width+d.now
	}
	same := d.twin(t, script, whole)
	r := d.call(t, d.keys, script, whole...)
	same(&r)
	d.begins()
	if d.there = true; !d.alone() {
		d.view = d.look(t)
		d.there = len(d.view.state) > 0
		d.hear(node, whole, &r)
	}
	return r
}

// over sweeps first where a pause has ended, so that nothing else meets its end.
func (d *driver) over(t *rapid.T) {
	if d.paused > 0 && d.paused <= d.now {
		d.ends(t)
	}
}

// tick sets the model's clock, and forgets what the keys' expiry has taken away.
func (d *driver) tick(t *rapid.T) {
	d.now, d.us = d.Now().UnixMilli(), d.Now().UnixMicro()
	if d.alone() || d.number(t, "EXISTS", d.keys[0]) == 1 {
		return
	}
	for _, c := range d.claims {
		if max(c.deadline, c.alive, c.forgotten) > d.now {
			t.Fatalf("the keys are gone, and %s was alive", c.id)
		}
	}
	if d.stays() || d.paused > d.now {
		t.Fatalf("the keys are gone, and there were resources, or a pause")
	}
	d.forget()
}

// pass lets time pass.
func (d *driver) pass(t *rapid.T) {
	of := []int{1, 37, 50, 300, 500, 700, 1000, 2500, 70_000}
	if d.busy {
		of = of[:6]
	}
	d.Advance(time.Duration(pickOf(t, "pass", of...))*time.Millisecond, d.keys...)
	d.tick(t)
}

// forget is a flush.
func (d *driver) forget() {
	fresh := newModel(d.server)
	d.told = map[string]int64{}
	fresh.now, fresh.us = d.now, d.us
	for _, c := range d.claims {
		c.deadline, c.alive, c.forgotten, c.stone, c.known, c.resource, c.lane, c.until = 0, 0, 0, "", false, "", "", 0
		fresh.claims[c.id] = c
	}
	d.model = fresh
}

func pickOf[T any](t *rapid.T, label string, of ...T) T { return rapid.SampledFrom(of).Draw(t, label) }

func digit(on bool) string {
	if on {
		return "1"
	}
	return "0"
}

func dec(n int64) string { return strconv.FormatInt(n, 10) }

// claim makes a new claim.
func (d *driver) claim(t *rapid.T) *claim {
	d.made++
	c := &claim{
		node: pickOf(t, "node", nodeA, nodeB), priority: pickOf(t, "priority", 0, 0, 0, 1),
		renews: rapid.Bool().Draw(t, "renews"), wait: 1000, lease: pickOf[int64](t, "lease", 1000, 1000, 600, 3000, 0),
		most: pickOf[int64](t, "max", 0, 0, 1500),
	}
	c.id = fmt.Sprintf("%s.%03d", c.node, d.made)
	c.wants = wants{
		kind: pickOf(t, "kind", "o", "o", "o", "s"), cooldown: pickOf[int64](t, "cooldown", 0, 0, 50, 700),
		bindfor: pickOf[int64](t, "bindfor", 0, 400, 2500, -1), bind: pickOf(t, "bind", append(boundNames, "", "", "")...),
	}
	switch d.wish {
	case "named":
		c.only = d.key(t)
	case "bound":
		c.bind = pickOf(t, "bound", boundNames...)
		c.patience = pickOf[int64](t, "patience", 300, 900, 2500, forever)
	}
	d.wish = ""
	if d.busy {
		// Long waits, in which much can happen that those who wait must be told of.
		c.kind, c.cooldown, c.wait = "o", pickOf[int64](t, "busy cooldown", 0, 50, 300), pickOf[int64](t, "wait", 1000, 5000)
	}
	if d.plain {
		c.only, c.patience = "", 0
		c.bind, c.lease = pickOf(t, "plain bind", "", "", "|"), max(min(c.lease, c.wait), 600)
		if rapid.Bool().Draw(t, "for long") {
			c.renews, c.most = true, 0
		}
	}
	c.owner = pickOf(t, "owner", "o|1 2", "")
	c.terms, c.asked = d.terms(c), first{c.lease, c.renews}
	d.claims[c.id] = c
	d.ids = append(d.ids, c.id)
	return c
}

// terms are the fixed terms of a claim's record.
func (d *driver) terms(c *claim) string { return state.FixedTerms(d.record(c)) }

// record is what a claim's node knows of it.
func (d *driver) record(c *claim) *state.Record {
	rec := &state.Record{
		Secret: secret,
		Weight: 1, Wait: time.Duration(c.wait) * time.Millisecond, Lease: time.Duration(c.lease) * time.Millisecond,
		MaxHold: time.Duration(c.most) * time.Millisecond, NoRenew: !c.renews, Priority: c.priority, Owner: c.owner,
	}
	if c.lease == 0 {
		rec.Lease = berth.Forever
	}
	bindfor := "-"
	if c.bindfor >= 0 {
		bindfor = dec(c.bindfor)
	}
	rec.Extra = fmt.Sprintf("%s %d %s %d %d:%s%s", c.kind, c.cooldown, bindfor, c.patience, len(c.only), c.only, c.bind)
	return rec
}

// old is a claim that has been made, the latest ones rather.
func (d *driver) old(t *rapid.T) *claim {
	if len(d.ids) == 0 {
		t.Skip("no claims")
	}
	of := d.ids[max(0, len(d.ids)-10):]
	if d.busy {
		live, line := slices.DeleteFunc(slices.Clone(of), d.dead), d.line()
		switch who := pickOf(t, "who", "any", "live", "live", "first"); {
		case who == "first" && len(line) > 0:
			return line[0]
		case who != "any" && len(live) > 0:
			of = live
		}
	}
	return d.claims[rapid.SampledFrom(of).Draw(t, "claim")]
}

// dead says whether a claim neither holds nor waits.
func (d *driver) dead(id string) bool {
	c := d.claims[id]
	return max(c.deadline, c.alive) <= d.now
}

func (d *driver) key(t *rapid.T) string { return rapid.SampledFrom(d.some).Draw(t, "resource") }

// same compares a reply with what the model says; see calls.go for what its elements may be.
func (d *driver) same(t *rapid.T, what string, r *scriptkit.Reply, want ...any) {
	t.Helper()
	if d.alone() {
		return
	}
	for n, w := range want {
		if w == "" && n >= r.Len() || w == nil {
			continue
		}
		got := r.Str(n)
		number, err := strconv.ParseInt(got, 10, 64)
		if err == nil {
			got = dec(number) // a time may be a text of fixed width
		}
		ok := got == fmt.Sprint(w)
		if w, is := w.(flags); is {
			ok = err == nil && int(number)&^w.loose == w.set
		}
		if !ok {
			t.Fatalf("%s: the server says %q at %d, the model %v", what, got, n, want)
		}
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
}
