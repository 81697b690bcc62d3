package model

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/keyspace"
)

const (
	// width is that of a range of scores, forever the score of a hold without
	// end: see scripts/state/score.lua.
	width   = int64(state.Width)
	forever = width - 1
)

// view is what the server has of the name in one instant, by claim. Times are
// milliseconds by its clock.
type view struct {
	now     int64
	thin    bool
	state   map[string]int64 // its numbers
	records map[string]engine.Record
	stones  map[string]bool // tombstones in the state
	holds   map[string]int64
	alive   map[string]int64
	places  map[string]string // lane and place: the lesser text stands before
	tombs   map[string]int64
	changed int64   // the revision of what an operator has changed last
	decided int64   // that of the last pause, or of its end
	expires []int64 // PEXPIRETIME of the keys that exist
}

const lookScript = `
local t = redis.call("TIME")
local reply = { t[1] * 1000 + math.floor(t[2] / 1000), redis.call("MGET", KEYS[1])[1] or redis.call("HGETALL", KEYS[1]),
  redis.call("ZRANGE", KEYS[2], 0, -1, "WITHSCORES") }
for _, key in ipairs(KEYS) do
  local at = redis.call("PEXPIRETIME", key)
  if at ~= -2 then reply[#reply + 1] = at end
end
return reply`

func (m *machine) space() keyspace.Space {
	space, err := keyspace.New(m.Namespace)
	if err != nil {
		panic(err) // the test's own
	}
	return space
}

func (m *machine) keys() []string {
	return []string{m.space().State(keyspace.Sem, m.Name), m.space().Line(keyspace.Sem, m.Name)}
}

// look reads what there is of the name.
func (m *machine) look(t TB) view {
	t.Helper()
	return look(t, m.Redis, m.keys())
}

// Whole checks that what the keys of a name say agrees with itself.
func Whole(t TB, redis rueidis.Client, state, line string) {
	t.Helper()
	v := look(t, redis, []string{state, line})
	v.whole(t, 0)
}

// TB is a test, of rapid or not.
type TB interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// look reads it all in one script.
func look(t TB, redis rueidis.Client, keys []string) view {
	t.Helper()
	v := view{
		state: map[string]int64{}, records: map[string]engine.Record{}, stones: map[string]bool{},
		holds: map[string]int64{}, alive: map[string]int64{}, places: map[string]string{}, tombs: map[string]int64{},
	}
	eval := redis.B().Eval().Script(lookScript).Numkeys(2).Key(keys...).Build()
	reply, err := redis.Do(context.Background(), eval).ToArray()
	must(t, err)
	v.now = number(t, reply[0])
	for _, at := range reply[3:] {
		v.expires = append(v.expires, number(t, at))
	}
	line, err := reply[2].AsStrSlice()
	must(t, err)
	if v.thin = reply[1].IsString(); v.thin {
		text, err := reply[1].ToString()
		must(t, err)
		v.slight(t, text)
		same(t, "members of a thin name's line", len(line), 0)
		return v
	}
	fields, err := reply[1].AsStrMap()
	must(t, err)
	for field, value := range fields {
		v.field(t, field, value)
	}
	scores := map[string]int64{}
	for i := 0; i < len(line); i += 2 {
		score, err := strconv.ParseFloat(line[i+1], 64)
		must(t, err)
		scores[line[i]] = int64(score)
	}
	for member, score := range scores {
		v.member(t, member, score)
	}
	if mark := scores["-"]; len(fields) > 0 && mark != 1<<53-1 {
		t.Fatalf("a fat name's line has its mark at %d", mark)
	}
	same(t, "a state and a line", len(fields) > 0, len(line) > 0)
	return v
}

// slight reads the text of a thin name.
func (v *view) slight(t TB, text string) {
	thin, err := testkit.ParseThin(text)
	must(t, err)
	v.state = testkit.ThinCounts(thin, math.MinInt64) // a fat name counts a hold until it is dropped, too
	v.state["fmt"], v.state["exp"] = 2, v.expires[0]
	if thin.Claim == "" {
		return
	}
	r, err := state.ParseRecord(thin.Record)
	must(t, err)
	if terms := len(state.FixedTerms(&r)); r.Weight != 1 || r.Lease > r.Wait || terms > 512 {
		t.Fatalf("%s cannot be held in thin form: %+v, terms of %d bytes", thin.Claim, r, terms)
	}
	v.records[thin.Claim], v.holds[thin.Claim] = r, thin.Ends
}

// field reads a field of the state of a fat name.
func (v *view) field(t TB, field, value string) {
	var err error
	claim, isClaim := strings.CutPrefix(field, "c:")
	switch {
	case field == "v":
		v.state, err = testkit.Counts(value)
	case field == "stem": // of a lock
	case field == "o:", field == "pause": // what an operator has changed last
		rev, _, _ := strings.Cut(value, " ")
		var at int64
		at, err = strconv.ParseInt(rev, 10, 64)
		if v.changed = max(v.changed, at); field == "pause" {
			v.decided = at
		}
	case !isClaim:
		t.Fatalf("the state has %q", field)
	case strings.HasPrefix(value, "!"):
		v.stones[claim] = true
	default:
		r, wrong := state.ParseRecord(value)
		if v.records[claim], err = r, wrong; r.Phase != 'w' {
			break
		}
		v.alive[claim] = r.Alive().UnixMilli()
	}
	must(t, err)
}

// member reads a member of the line.
func (v *view) member(t TB, member string, score int64) {
	letter, claim, _ := strings.Cut(member, ":")
	place, waits, found := strings.Cut(member, "-")
	switch {
	case letter == "h":
		v.holds[claim] = score - width
	case letter == "t":
		v.tombs[claim] = score - 260*width
	case found && place != "" && score < 512:
		v.places[waits] = fmt.Sprintf("%03d %s", score, place)
	case member != "-":
		t.Fatalf("the line has %q", member)
	}
}

// used is the sum of the weights of all holds that have not ended by now.
func (v *view) used(now int64) (sum int) {
	for claim, deadline := range v.holds {
		if deadline > now {
			sum += v.records[claim].Weight
		}
	}
	return sum
}

// line are those who wait and live by now, the first in line first. Of one place, which a claim that the server had
// forgotten may share with one that came meanwhile, the lesser id stands before.
func (v *view) line(now int64) (ids []string) {
	for id := range v.places {
		if v.alive[id] > now {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return strings.Compare(v.places[a]+"-"+a, v.places[b]+"-"+b) })
	return ids
}

// whole checks that what is counted is what is there, that every claim has one
// role, and that all keys end together and not too soon.
func (v *view) whole(t TB, linger int64) {
	same(t, "used and the sum of the weights", v.state["used"], int64(v.used(math.MinInt64)))
	same(t, "waiting and how many have a place", v.state["waiting"], int64(len(v.places)))
	same(t, "those who were heard of and those who have a place", len(v.alive), len(v.places))
	same(t, "gone and the tombstones in line", v.state["gone"], int64(len(v.tombs)))
	same(t, "the tombstones in line and in the state", len(v.tombs), len(v.stones))
	same(t, "records and roles", len(v.records), len(v.holds)+len(v.places))
	var endless, furthest, due int64
	for claim, r := range v.records {
		deadline, held := v.holds[claim]
		_, lives := v.alive[claim]
		_, stands := v.places[claim]
		if held == stands || lives != stands {
			t.Fatalf("%s: hold %t, life %t, place %t", claim, held, lives, stands)
		}
		if held && r.Lease == berth.Forever && r.MaxHold == 0 && r.Phase != 'g' {
			endless++
		}
		if held && deadline != forever && (due == 0 || deadline < due) {
			due = deadline
		}
	}
	same(t, "forever and the holds without end", v.state["forever"], endless)
	same(t, "due and the earliest end of a hold", v.state["due"], due)
	same(t, "the revision and that of the last change", v.state["rev"], v.changed)
	if recent := min(v.changed, v.now) + 60_000; v.changed > 0 && v.now < recent {
		furthest = recent
	}
	for _, deadlines := range []map[string]int64{v.holds, v.alive, v.tombs} {
		for _, deadline := range deadlines {
			if deadline != forever {
				furthest = max(furthest, deadline)
			}
		}
	}
	furthest = max(furthest, v.state["pause"])
	exp, expires := v.state["exp"], v.state["exp"]
	if endless > 0 || v.state["keep"] > 0 {
		expires = -1
	}
	for _, at := range v.expires {
		same(t, "the expiry of a key and of the name", at, expires)
	}
	if furthest > 0 && exp < furthest+linger {
		t.Fatalf("the keys end %d ms too soon", furthest+linger-exp)
	}
	if busy := v.state["busy"]; busy > v.now {
		t.Fatalf("the name was last busy in %d ms", busy-v.now)
	}
}

// The helpers below fail the test.

func must(t TB, err error) {
	t.Helper()
	if err != nil && !rueidis.IsRedisNil(err) {
		t.Fatal(err)
	}
}

func number(t TB, message rueidis.RedisMessage) int64 {
	t.Helper()
	n, err := message.AsInt64()
	must(t, err)
	return n
}

func same[T comparable](t TB, what string, a, b T) {
	t.Helper()
	if a != b {
		t.Fatalf("%s differ: %v, %v", what, a, b)
	}
}
