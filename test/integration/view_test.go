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
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/keyspace"
)

// view is what the server keeps of a name, in one instant, by claim.
type view struct {
	now     int64            // ms
	state   map[string]int64 // the scalars
	stem    string           // of a lock whose owner has entered more than once
	records map[string]engine.Record
	stones  map[string]string // what tombstones say
	holds   map[string]int64  // deadline, ms
	alive   map[string]int64  // until when those who wait live, ms
	places  map[string]string // of those who wait: lane and place
	thin    bool              // that the name is
	tombs   map[string]int64  // when a tombstone may be forgotten, ms
	expires []int64           // PEXPIRETIME of the keys that exist

	// Of a pool only.
	counts    []int64           // resources, free, leased, leaving, generation, moves
	resources map[string]string // what claims hold
	rests     map[string]int64  // when a resource's rest ends, ms
	ends      map[string]int64  // when a resource leaves, ms
	bindings  map[string]int64  // when a binding ends, ms
}

// look reads it all. The line's bands are those of scripts/state/band.lua.
func (b *bed) look(name string) view {
	b.Helper()
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
	keys := b.keysOf(name)
	reply, err := b.do(append([]string{"EVAL", script, strconv.Itoa(len(keys))}, keys...)...).ToArray()
	require.NoError(b, err)
	v := view{
		state: map[string]int64{}, records: map[string]engine.Record{}, stones: map[string]string{},
		holds: map[string]int64{}, alive: map[string]int64{}, places: map[string]string{}, tombs: map[string]int64{},
		resources: map[string]string{}, rests: map[string]int64{}, ends: map[string]int64{}, bindings: map[string]int64{},
	}
	v.now, err = reply[0].AsInt64()
	require.NoError(b, err)
	fields, err := reply[1].AsStrMap()
	require.NoError(b, err)
	for field, value := range fields {
		if field == "" {
			v.ofThin(b, value)
		} else {
			v.field(b, field, value)
		}
	}
	line, err := reply[2].AsStrSlice()
	require.NoError(b, err)
	for i := 0; i < len(line); i += 2 {
		v.member(b, line[i], line[i+1])
	}
	for _, at := range reply[3:] {
		ms, err := at.AsInt64()
		require.NoError(b, err)
		v.expires = append(v.expires, ms)
	}
	return v
}

func (v *view) field(b *bed, field, value string) {
	b.Helper()
	claim, isClaim := strings.CutPrefix(field, "c:")
	word, isStone := strings.CutPrefix(value, "!")
	var err error
	switch {
	case field == "stem":
		v.stem = value
	case field == "v":
		var counts map[string]int64
		counts, err = testkit.Counts(value)
		maps.Copy(v.state, counts)
	case b.kind == keyspace.Pool && v.ofPool(b, field, value):
	case !isClaim:
		v.state[field], err = strconv.ParseInt(value, 10, 64)
	case isStone:
		v.stones[claim] = word
	default:
		v.records[claim], err = line.ParseRecord(value)
		words := strings.SplitN(value, " ", 6) // of one that waits, see scripts/state/record.lua
		if heard, e := strconv.ParseInt(words[4], 10, 64); words[0] == "w" && e == nil {
			v.alive[claim] = heard + v.records[claim].Wait.Milliseconds()
		}
	}
	require.NoError(b, err, field)
}

// ofThin is the text of a thin name.
func (v *view) ofThin(b *bed, text string) {
	b.Helper()
	thin, err := testkit.ParseThin(text)
	require.NoError(b, err)
	v.thin, v.state = true, thin.Counts(v.now)
	if thin.Claim != "" && thin.Ends > v.now {
		v.holds[thin.Claim] = thin.Ends
		v.records[thin.Claim], err = line.ParseRecord(thin.Record)
		require.NoError(b, err)
	}
}

func (v *view) member(b *bed, member, score string) {
	b.Helper()
	const width = int64(1) << 44
	at, err := strconv.ParseFloat(score, 64)
	require.NoError(b, err)
	if place, claim, waits := strings.Cut(member, "-"); member == "-" {
		return // it keeps the line
	} else if waits && at < 512 {
		v.places[claim] = fmt.Sprintf("%03.f %s", at, place)
		return
	}
	type band struct {
		into map[string]int64
		from int64
	}
	bands := map[string]band{"h": {v.holds, width}, "t": {v.tombs, 260 * width}}
	if b.kind == keyspace.Pool {
		bands["e"], bands["x"], bands["u"] = band{v.rests, 262 * width}, band{v.ends, 264 * width}, band{v.bindings, 266 * width}
	}
	letter, claim, _ := strings.Cut(member, ":")
	into, ok := bands[letter]
	require.True(b, ok, "the line has %q", member)
	into.into[claim] = int64(at) - into.from
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

// holder is the one claim that holds.
func (b *bed) holder(name string) (claim string, deadline int64) {
	b.Helper()
	v := b.look(name)
	require.Len(b, v.holds, 1)
	for claim, deadline := range v.holds {
		return claim, deadline
	}
	return "", 0
}

// whole checks that what is counted is what is there, and that all keys end
// together.
func (b *bed) whole(name string) view {
	b.Helper()
	v := b.look(name)
	held := 0
	for claim := range v.holds {
		held += v.records[claim].Weight
	}
	require.EqualValues(b, held, v.state["used"], "used is not the sum of the weights")
	require.EqualValues(b, len(v.alive), v.state["waiting"], "waiting is not how many wait")
	require.EqualValues(b, len(v.tombs), v.state["gone"], "gone is not how many tombstones there are")
	require.Empty(b, missing(v.holds, v.records), "holds without a record")
	require.Empty(b, missing(v.alive, v.records), "waiters without a record")
	require.Empty(b, missing(v.alive, v.places), "waiters without a place")
	require.Empty(b, missing(v.places, v.alive), "places of nobody")
	require.Empty(b, missing(v.stones, v.tombs), "tombstones without an end")
	require.Len(b, v.records, len(v.holds)+len(v.alive), "records of nothing")
	if b.kind == keyspace.Pool {
		b.poolWhole(name, v)
	}
	b.endTogether(v)
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
func (b *bed) endTogether(v view) {
	b.Helper()
	last := int64(0)
	for _, inside := range []map[string]int64{v.holds, v.alive, v.tombs} {
		for _, deadline := range inside {
			last = max(last, deadline)
		}
	}
	for _, at := range v.expires {
		require.Equal(b, v.expires[0], at, "the keys of a name end apart: %v", v.expires)
		if b.kind == keyspace.Pool && v.counts[0] > v.counts[3] {
			require.EqualValues(b, -1, at, "a pool with resources expires")
			continue
		}
		require.Greater(b, at, last, "a key without an end, or one that ends before what is inside")
	}
}

// idle checks that nothing is left but the state, which expires.
func (b *bed) idle(name string) {
	b.Helper()
	v := b.whole(name)
	require.Empty(b, v.holds)
	require.Empty(b, v.alive)
	require.Empty(b, v.stones)
	if b.kind == keyspace.Pool {
		return // its resources stay
	}
	require.Empty(b, v.places)
	require.Empty(b, v.tombs)
	keys := 2 // of which the line has only what keeps it
	if v.thin {
		keys = 1
	}
	require.LessOrEqual(b, len(v.expires), keys, "an idle name has no more keys")
}

// keys are all keys of the namespace.
func (b *bed) keys() []string {
	b.Helper()
	var all []string
	for cursor := uint64(0); ; {
		scan := b.admin.B().Scan().Cursor(cursor).Match(b.ns + ":*").Count(1000).Build()
		page, err := b.admin.Do(b.within(patience), scan).AsScanEntry()
		require.NoError(b, err)
		all = append(all, page.Elements...)
		if cursor = page.Cursor; cursor == 0 {
			return all
		}
	}
}

func (b *bed) stateKey(name string) string { return b.space.State(b.kind, name) }

func (b *bed) lineKey(name string) string { return b.space.Line(b.kind, name) }

// keysOf are the keys of a name, in the order in which scripts take them.
func (b *bed) keysOf(name string) []string {
	keys := []string{b.stateKey(name), b.lineKey(name)}
	if b.kind == keyspace.Pool {
		keys = append(keys, b.itemsKey(name), b.freeKey(name), b.bindingsKey(name))
	}
	return keys
}

// dumpsOf are all keys of a name, as bytes.
func (b *bed) dumpsOf(name string) (all []string) {
	b.Helper()
	for _, key := range b.keysOf(name) {
		text, err := b.do("DUMP", key).ToString()
		if !rueidis.IsRedisNil(err) {
			require.NoError(b, err)
		}
		all = append(all, text)
	}
	return all
}
