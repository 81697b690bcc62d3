package model

import (
	"context"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/rueidis"
	"pgregory.net/rapid"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/model/world"
	"github.com/berth-go/berth/pkg/keyspace"
)

const (
	// width is that of a band of scores, forever the score of a hold without
	// end: see scripts/state/band.lua.
	width   = int64(1) << 44
	forever = width - 1
)

// view is what the server has of the name in one instant, by claim. Times are
// milliseconds by its clock.
type view struct {
	now     int64
	state   map[string]int64 // its numbers
	records map[string]engine.Record
	stones  map[string]bool // tombstones in the state
	holds   map[string]int64
	alive   map[string]int64
	places  map[string]int64
	tombs   map[string]int64
	expires []int64 // PEXPIRETIME of the keys that exist
}

const lookScript = `
local t = redis.call("TIME")
local reply = { t[1] * 1000 + math.floor(t[2] / 1000), redis.call("HGETALL", KEYS[1]),
  redis.call("ZRANGE", KEYS[2], 0, -1, "WITHSCORES") }
for _, key in ipairs(KEYS) do
  local at = redis.call("PEXPIRETIME", key)
  if at ~= -2 then reply[#reply + 1] = at end
end
return reply`

func (m *machine) keys() []string {
	space, err := keyspace.New(m.Namespace)
	if err != nil {
		panic(err) // the test's own
	}
	return []string{space.State(keyspace.Sem, m.Name), space.Line(keyspace.Sem, m.Name)}
}

// look reads it all in one script.
func (m *machine) look(t *rapid.T) view {
	v := view{
		state: map[string]int64{}, records: map[string]engine.Record{}, stones: map[string]bool{},
		holds: map[string]int64{}, alive: map[string]int64{}, places: map[string]int64{}, tombs: map[string]int64{},
	}
	eval := m.Redis.B().Eval().Script(lookScript).Numkeys(2).Key(m.keys()...).Build()
	reply, err := m.Redis.Do(context.Background(), eval).ToArray()
	must(t, err)
	v.now = number(t, reply[0])
	fields, err := reply[1].AsStrMap()
	must(t, err)
	for field, value := range fields {
		claim, isClaim := strings.CutPrefix(field, "c:")
		switch {
		case field == "counts":
			var counts map[string]int64
			counts, err = world.Counts(value)
			maps.Copy(v.state, counts)
		case !isClaim:
			v.state[field], err = strconv.ParseInt(value, 10, 64)
		case strings.HasPrefix(value, "!"):
			v.stones[claim] = true
		default:
			v.records[claim], err = line.ParseRecord(value)
		}
		must(t, err)
	}
	line, err := reply[2].AsStrSlice()
	must(t, err)
	bands := map[string]map[string]int64{"h": v.holds, "a": v.alive, "q": v.places, "t": v.tombs}
	from := map[string]int64{"h": 0, "a": width, "q": 2 * width, "t": 260 * width}
	for i := 0; i < len(line); i += 2 {
		score, err := strconv.ParseFloat(line[i+1], 64)
		must(t, err)
		letter, claim, _ := strings.Cut(line[i], ":")
		if bands[letter] == nil {
			t.Fatalf("the line has %q", line[i])
		}
		bands[letter][claim] = int64(score) - from[letter]
	}
	for _, at := range reply[3:] {
		v.expires = append(v.expires, number(t, at))
	}
	return v
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

// line are those who wait and live by now, the first in line first.
func (v *view) line(now int64) (ids []string) {
	for id := range v.places {
		if v.alive[id] > now {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return int(v.places[a] - v.places[b]) })
	return ids
}

// whole checks that what is counted is what is there, that every claim has one
// role, and that all keys end together and not too soon.
func (v *view) whole(t *rapid.T, linger int64) {
	same(t, "used and the sum of the weights", v.state["used"], int64(v.used(math.MinInt64)))
	same(t, "waiting and how many have a place", v.state["waiting"], int64(len(v.places)))
	same(t, "those who live and those who have a place", len(v.alive), len(v.places))
	same(t, "gone and the tombstones in line", v.state["gone"], int64(len(v.tombs)))
	same(t, "the tombstones in line and in the state", len(v.tombs), len(v.stones))
	same(t, "records and roles", len(v.records), len(v.holds)+len(v.places))
	var endless, furthest int64
	for claim, r := range v.records {
		_, held := v.holds[claim]
		_, lives := v.alive[claim]
		_, stands := v.places[claim]
		if held == stands || lives != stands {
			t.Fatalf("%s: hold %t, life %t, place %t", claim, held, lives, stands)
		}
		if held && r.Lease == berth.Forever && r.MaxHold == 0 && r.Phase != 'g' {
			endless++
		}
	}
	same(t, "forever and the holds without end", v.state["forever"], endless)
	for _, band := range []map[string]int64{v.holds, v.alive, v.tombs} {
		for _, deadline := range band {
			if deadline != forever {
				furthest = max(furthest, deadline)
			}
		}
	}
	exp := v.state["exp"]
	for _, at := range v.expires {
		same(t, "the expiry of a key and exp", max(at, 0), exp)
	}
	switch stays := endless > 0 || v.state["keep"] > 0; {
	case stays != (exp == 0) && v.state["fmt"] > 0:
		t.Fatalf("exp is %d with %d endless holds and keep %d", exp, endless, v.state["keep"])
	case !stays && len(v.records)+len(v.tombs) > 0 && exp < furthest+linger:
		t.Fatalf("the keys end %d ms too soon", furthest+linger-exp)
	}
}

// The helpers below fail the test.

func must(t *rapid.T, err error) {
	t.Helper()
	if err != nil && !rueidis.IsRedisNil(err) {
		t.Fatal(err)
	}
}

func number(t *rapid.T, message rueidis.RedisMessage) int64 {
	t.Helper()
	n, err := message.AsInt64()
	must(t, err)
	return n
}

func same[T comparable](t *rapid.T, what string, a, b T) {
	t.Helper()
	if a != b {
		t.Fatalf("%s differ: %v, %v", what, a, b)
	}
}
