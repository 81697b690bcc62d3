package integration

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/keyspace"
)

// view is what the server keeps of a name, in one instant, by claim.
type view struct {
	now     int64            // ms
	state   map[string]int64 // the scalars
	group   string           // of a lock whose owner has entered more than once
	records map[string]engine.Record
	stones  map[string]string // what tombstones say
	holds   map[string]int64  // deadline, ms
	alive   map[string]int64  // until when those who wait live, ms
	places  map[string]string // of those who wait: lane and place
	thin    bool              // that the name is
	tombs   map[string]int64  // when a tombstone may be forgotten, ms
	expires []int64           // PEXPIRETIME of the keys that exist

	// Of a pool only.
	counts    state.Counts
	resources map[string]string // what claims hold
}

// look reads it all. The line's ranges are those of scripts/state/score.lua. It is no EVAL: runs counts those of Berth.
func (w *world) look(name string) view {
	w.Helper()
	const script = `
local t = redis.call("TIME")
local thin = redis.call("MGET", KEYS[1])[1]
local reply = { t[1] * 1000 + math.floor(t[2] / 1000), thin and { "", thin } or redis.call("HGETALL", KEYS[1]),
  redis.call("ZRANGE", KEYS[2], 0, -1, "WITHSCORES") }
for _, key in ipairs(KEYS) do
  local at = redis.call("PEXPIRETIME", key)
  if at ~= -2 then reply[#reply + 1] = at end
end
return reply`
	keys := w.keysOf(name)
	reply, err := w.do(append([]string{"EVAL_RO", script, strconv.Itoa(len(keys))}, keys...)...).ToArray()
	require.NoError(w, err)
	v := view{
		state: map[string]int64{}, records: map[string]engine.Record{}, stones: map[string]string{},
		holds: map[string]int64{}, alive: map[string]int64{}, places: map[string]string{}, tombs: map[string]int64{},
		resources: map[string]string{},
	}
	v.now, err = reply[0].AsInt64()
	require.NoError(w, err)
	fields, err := reply[1].AsStrMap()
	require.NoError(w, err)
	for field, value := range fields {
		if field == "" {
			v.ofThin(w, value)
		} else {
			v.field(w, field, value)
		}
	}
	if w.kind == keyspace.Pool {
		values, _, _ := state.ParseValues(fields["v"])
		v.counts, err = state.ParseCounts(fields["pool"], values.Used)
		require.NoError(w, err, fields["pool"])
	}
	line, err := reply[2].AsStrSlice()
	require.NoError(w, err)
	for i := 0; i < len(line); i += 2 {
		v.member(w, line[i], line[i+1])
	}
	for _, at := range reply[3:] {
		ms, err := at.AsInt64()
		require.NoError(w, err)
		v.expires = append(v.expires, ms)
	}
	return v
}

func (v *view) field(w *world, field, value string) {
	w.Helper()
	claim, isClaim := strings.CutPrefix(field, "c:")
	word, isStone := strings.CutPrefix(value, "!")
	var err error
	switch {
	case field == "stem", field == "pause":
	case strings.HasPrefix(field, "o:"): // what an operator has changed
		v.group = value
	case w.kind == keyspace.Pool && (strings.HasPrefix(field, "l:") || strings.HasPrefix(field, "q:")): // lanes of resources
	case field == "v":
		var counts map[string]int64
		counts, err = testkit.Counts(value)
		maps.Copy(v.state, counts)
	case w.kind == keyspace.Pool && v.ofPool(w, field, value):
	case !isClaim:
		v.state[field], err = strconv.ParseInt(value, 10, 64)
	case isStone:
		v.stones[claim] = word
	default:
		v.records[claim], err = state.ParseRecord(value)
		if r := v.records[claim]; r.Phase == 'w' {
			v.alive[claim] = r.Alive().UnixMilli()
		}
	}
	require.NoError(w, err, field)
}

// ofThin is the text of a thin name.
func (v *view) ofThin(w *world, text string) {
	w.Helper()
	thin, err := testkit.ParseThin(text)
	require.NoError(w, err)
	v.thin, v.state = true, testkit.ThinCounts(thin, v.now)
	if thin.Claim != "" && thin.Ends > v.now {
		v.holds[thin.Claim] = thin.Ends
		v.records[thin.Claim], err = state.ParseRecord(thin.Record)
		require.NoError(w, err)
	}
}

func (v *view) member(w *world, member, score string) {
	w.Helper()
	const width = int64(state.Width)
	at, err := strconv.ParseFloat(score, 64)
	require.NoError(w, err)
	letter, claim, _ := strings.Cut(member, ":")
	if place, claim, waits := strings.Cut(member, "-"); member == "-" {
		return // it keeps the line
	} else if waits && at < 512 {
		v.places[claim] = fmt.Sprintf("%03.f %s", at, place)
		return
	} else if waits && int64(at) < width && len(place) > 3 { // for one resource of a pool
		v.places[claim] = place[:3] + " " + place[3:]
		return
	}
	switch letter {
	case "h":
		v.holds[claim] = int64(at) - width
	case "t":
		v.tombs[claim] = int64(at) - 260*width
	default: // moments of resources and bindings, of what an operator has changed, and of those who wait for one resource
		require.Equal(w, keyspace.Pool, w.kind, "the line has %q", member)
		require.Contains(w, []string{"e", "x", "u", "o", "w", "p"}, letter, "the line has %q", member)
	}
}

func (v view) waiting() int { return len(v.alive) }

// inLine are those who wait, the first in line first.
func (v view) inLine() []string {
	var claims []string
	for claim := range v.places {
		claims = append(claims, claim)
	}
	slices.SortFunc(claims, func(a, b string) int { return strings.Compare(v.places[a]+"-"+a, v.places[b]+"-"+b) })
	return claims
}

// whole checks that what is counted is what is there, and that all keys end
// together.
func (w *world) whole(name string) view {
	w.Helper()
	v := w.look(name)
	held := 0
	for claim := range v.holds {
		held += v.records[claim].Weight
	}
	require.EqualValues(w, held, v.state["used"], "used is not the sum of the weights")
	require.EqualValues(w, len(v.alive), v.state["waiting"], "waiting is not how many wait")
	require.EqualValues(w, len(v.tombs), v.state["gone"], "gone is not how many tombstones there are")
	require.Empty(w, missing(v.holds, v.records), "holds without a record")
	require.Empty(w, missing(v.alive, v.records), "waiters without a record")
	require.Empty(w, missing(v.alive, v.places), "waiters without a place")
	require.Empty(w, missing(v.places, v.alive), "places of nobody")
	require.Empty(w, missing(v.stones, v.tombs), "tombstones without an end")
	require.Len(w, v.records, len(v.holds)+len(v.alive), "records of nothing")
	if w.kind == keyspace.Pool {
		w.poolWhole(name, v)
	}
	w.endTogether(v)
	return v
}

// missing are the keys of one map that another lacks.
func missing[V, W any](of map[string]V, in map[string]W) (keys []string) {
	for key := range of {
		if _, ok := in[key]; !ok {
			keys = append(keys, key)
		}
	}
	return keys
}

// endTogether checks that the keys expire, in one instant, and not before
// anything inside.
func (w *world) endTogether(v view) {
	w.Helper()
	last := int64(0)
	for _, inside := range []map[string]int64{v.holds, v.alive, v.tombs} {
		for _, deadline := range inside {
			last = max(last, deadline)
		}
	}
	for _, at := range v.expires {
		require.Equal(w, v.expires[0], at, "the keys of a name end apart: %v", v.expires)
		if w.kind == keyspace.Pool && v.counts.Resources > v.counts.Leaving {
			require.EqualValues(w, -1, at, "a pool with resources expires")
			continue
		}
		require.Greater(w, at, last, "a key without an end, or one that ends before what is inside")
	}
}

// idle checks that nothing is left but the state, which expires.
func (w *world) idle(name string) {
	w.Helper()
	v := w.whole(name)
	require.Empty(w, v.holds)
	require.Empty(w, v.alive)
	require.Empty(w, v.stones)
	if w.kind == keyspace.Pool {
		return // its resources stay
	}
	require.Empty(w, v.places)
	require.Empty(w, v.tombs)
	keys := 2 // of which the line has only what keeps it
	if v.thin {
		keys = 1
	}
	require.LessOrEqual(w, len(v.expires), keys, "an idle name has no more keys")
}

func (w *world) stateKey(name string) string { return w.space.State(w.kind, name) }

func (w *world) lineKey(name string) string { return w.space.Line(w.kind, name) }

// keysOf are the keys of a name, in the order in which scripts take them.
func (w *world) keysOf(name string) []string {
	keys := []string{w.stateKey(name), w.lineKey(name)}
	if w.kind == keyspace.Pool {
		keys = append(keys, w.itemsKey(name), w.freeKey(name), w.bindingsKey(name))
	}
	return keys
}

// dumpsOf are all keys of a name, as bytes.
func (w *world) dumpsOf(name string) (all []string) {
	w.Helper()
	for _, key := range w.keysOf(name) {
		text, err := w.do("DUMP", key).ToString()
		if !rueidis.IsRedisNil(err) {
			require.NoError(w, err)
		}
		all = append(all, text)
	}
	return all
}
