package integration

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/test/harness"
)

// longestScript is what one script may take, whatever the pool has.
const longestScript = 20 * time.Millisecond

// bigPool is a large pool on a server of its own. The test has the machine to itself:
// no other of its package runs beside one that is not parallel.
type bigPool struct {
	*bed
	*pool
	laps []time.Duration // what the server has had of a processor from one lap to the next
	last time.Duration   // what it had had of it at the last one
}

func newBigPool(t *testing.T) *bigPool {
	t.Helper()
	b := newBed(t, harness.Start(t, keepSlow()...))
	b.kind = keyspace.Pool
	return &bigPool{bed: b, pool: b.pool(allocator.Config{Lease: 10 * time.Minute})}
}

// watch runs a step, and returns how many scripts that were, and the longest by the
// slow log, at the least. The slow log goes by the clock, so a server that had to wait
// for a processor counts that too; how long that was in all is taken off.
func (b *bigPool) watch(what string, step func()) (scripts int, longest time.Duration) {
	b.Helper()
	b.slowest()
	b.laps = nil
	had, before := b.processor()
	b.last = had
	start := time.Now()
	scripts = b.cost(step)
	took := time.Since(start)
	longest = time.Duration(b.slowest()) * time.Microsecond
	_, after := b.processor()
	b.Logf("%s: %d scripts in %v, the longest %v by the slow log; it had to wait %v in all",
		what, scripts, took.Round(time.Millisecond), longest, (after - before).Round(time.Millisecond))
	return scripts, max(0, longest-(after-before))
}

// once watches a step that cannot be run again on the same pool.
func (b *bigPool) once(what string, step func()) (scripts int) {
	b.Helper()
	scripts, longest := b.watch(what, step)
	require.LessOrEqual(b, longest, longestScript, what)
	return scripts
}

// either watches a step that may be run again: of the two the one with the shorter
// longest script counts, see twice.
func (b *bigPool) either(what string, step func()) {
	b.Helper()
	_, longest := b.watch(what, step)
	_, again := b.watch(what+", again", step)
	require.LessOrEqual(b, min(longest, again), longestScript, what)
}

// twice watches a step that is run two times on the same pool, with a new Lua, and
// returns how many scripts that were the second time. What a script does there is the
// same each time; what the machine's host takes from it in between is not, and counts as
// the server's: so of two equal scripts the shorter one has its own time.
func (b *bigPool) twice(what string, step func()) (scripts int) {
	b.Helper()
	b.copyPool("", ":kept")
	b.newLua()
	_, longest := b.watch(what, step)
	first := b.laps
	b.copyPool(":kept", "")
	b.newLua()
	scripts, again := b.watch(what+", again", step)
	require.LessOrEqual(b, min(longest, again), longestScript, what)
	own := ownTime(first, b.laps)
	b.Logf("%s: the longest %v of a processor, of %d measured two times", what, own.Round(10*time.Microsecond), min(len(first), len(b.laps)))
	require.LessOrEqual(b, own, longestScript, what)
	return scripts
}

// ownTime is the longest of the steps that two runs took, each by the shorter of the two.
func ownTime(first, second []time.Duration) (longest time.Duration) {
	for i := range min(len(first), len(second)) {
		longest = max(longest, min(first[i], second[i]))
	}
	return longest
}

// copyPool copies the pool, from keys and to keys that end in something more.
func (b *bigPool) copyPool(from, to string) {
	b.Helper()
	for _, key := range b.keysOf(proxies) {
		b.do("DEL", key+to)
		b.do("COPY", key+from, key+to)
	}
}

// newLua gives the server a new Lua. What earlier scripts have left in it would be
// collected by those that come next, at up to 25 ms each.
func (b *bed) newLua() {
	b.Helper()
	b.do("SCRIPT", "FLUSH", "SYNC")
	b.load()
}

// lap ends a part of a step that is measured: at least what its scripts have taken.
func (b *bigPool) lap() {
	had, _ := b.processor()
	b.laps, b.last = append(b.laps, had-b.last), had
}

// processor is how long the server's main thread has had a processor, and has waited
// for one: 0 where the machine does not say.
func (b *bed) processor() (had, waited time.Duration) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/schedstat", b.server.PID()))
	if err == nil {
		_, err = fmt.Sscan(string(text), &had, &waited)
	}
	if err != nil {
		return 0, 0
	}
	return had, waited
}

// fill adds so many resources.
func (b *bigPool) fill(what string, many int, expiry time.Duration) {
	b.Helper()
	scripts := b.twice(what, func() { b.addAll(b.pool, many, expiry) })
	require.LessOrEqual(b, scripts, many/200+2, "more than one script for 200 of them")
}

// addAll adds so many resources, a lap each step.
func (b *bigPool) addAll(p *pool, many int, expiry time.Duration) {
	b.Helper()
	told := 0
	change, err := p.Add(b.within(3*time.Minute), numbered(many), &allocator.AddOptions{
		Expiry: expiry,
		Progress: func(done, total int) {
			b.lap()
			require.Equal(b, min(told+200, many), done)
			require.Equal(b, many, total)
			told = done
		},
	})
	require.NoError(b, err)
	require.Equal(b, many, change.Added+change.Kept)
	require.Equal(b, many, told)
}

// due has everything of one kind end now: holds (h), rests (e) or resources (x). It
// writes what the scripts keep of it, as the clock does not move for a test.
func (b *bed) due(letter string) {
	b.Helper()
	const script = `
local t = redis.call("TIME")
local now = t[1] * 1000 + math.floor(t[2] / 1000) - 1
local from = ({ h = 0, e = 262 * 2^44, x = 264 * 2^44 })[ARGV[1]]
for _, member in ipairs(redis.call("ZRANGEBYSCORE", KEYS[1], from, from + 2^44 - 1)) do
  redis.call("ZADD", KEYS[1], string.format("%.0f", from + now), member)
  local field = "i" .. string.sub(member, 3)
  local item = ARGV[1] ~= "h" and redis.call("HGET", KEYS[2], field)
  if item then
    local max, expiry, ends, rest = string.match(item, "^(%d+) (%d+) (%d+) (.*)$")
    if ARGV[1] == "e" then ends = now else expiry = now end
    redis.call("HSET", KEYS[2], field, string.format("%s %.0f %.0f %s", max, expiry, ends, rest))
  end
end`
	b.do("EVAL", script, "2", b.lineKey(proxies), b.itemsKey(proxies), letter)
	b.newLua()
}

// expireOne ends one lease from among many, and its cooldown, and returns the resource.
func (b *bed) expireOne(cooldown time.Duration) string {
	b.Helper()
	const script = `
local found = redis.call("ZRANGEBYSCORE", KEYS[1], 0, 2^44 - 1, "LIMIT", 54321, 1)[1]
local t = redis.call("TIME")
redis.call("ZADD", KEYS[1], string.format("%.0f", t[1] * 1000 - ARGV[1]), found)
return redis.call("HGET", KEYS[2], "r:" .. string.sub(found, 3))`
	ms := strconv.FormatInt(2*cooldown.Milliseconds(), 10)
	resource, err := b.do("EVAL", script, "2", b.lineKey(proxies), b.stateKey(proxies), ms).ToString()
	require.NoError(b, err)
	return resource
}

// sweepAll sweeps until nothing is left. That must take as many scripts as it has to:
// one drops 100 at the most. What comes before, if anything, may begin to sweep in the
// background; then nobody can tell what one script of several has taken of a processor.
func (b *bigPool) sweepAll(what string, many int, before func()) {
	b.Helper()
	scripts := b.twice(what, func() {
		lap := b.lap
		if before != nil {
			before()
			lap = func() {}
		}
		ctx := b.within(2 * patience)
		for dropped := 1; dropped > 0; lap() {
			var err error
			dropped, err = b.GC(ctx)
			require.NoError(b, err)
			require.LessOrEqual(b, dropped, 100)
		}
	})
	require.GreaterOrEqual(b, scripts, many/100)
	require.LessOrEqual(b, scripts, many/100+many/1000)
}

// A hundred thousand leases, then as many rests, then as many resources, that have
// all ended and that nobody has swept.
func TestAHundredThousandExpiredEntriesCostNoScriptMoreThanTheSweep(t *testing.T) {
	const many, cooldown = 100_000, time.Hour
	b := newBigPool(t)
	b.fill("adding", many, 0)
	owner := b.spawn(10 * time.Minute)
	hoarded := owner.send(order{Do: "hoard", Name: proxies, Count: many, Rest: cooldown})
	b.awaitFor(2*time.Minute, "all are leased", func() bool { return len(hoarded) > 0 })
	require.Empty(t, owner.hear(hoarded).Err)
	owner.kill()
	ctx := b.within(4 * patience)
	_, err := b.TryAllocate(ctx, nil)
	require.ErrorIs(t, err, allocator.ErrBusy)

	// One that has expired among them all.
	expired := b.expireOne(cooldown)
	var a *allocation
	scripts := b.once("an allocation where one lease of all has expired", func() {
		a, err = b.TryAllocate(ctx, nil)
		require.NoError(t, err)
		require.Equal(t, expired, a.Resource())
	})
	require.Equal(t, 1, scripts)
	commands := b.commands(func() {
		b.giveBack(a)
		a = b.allocate(b.pool, nil)
	})
	t.Logf("a release and an allocation are %d commands", commands)
	require.Less(t, commands, 50, "they pass over the pool")
	b.giveBack(a)

	// All of them.
	b.due("h")
	b.sweepAll("an allocation and the sweeps where all leases have expired", many, func() {
		a, err := b.TryAllocate(ctx, nil) // takes the one that is free
		require.NoError(t, err)
		b.giveBack(a)
	})
	s := b.found()
	require.Equal(t, many, s.Resources)
	require.Equal(t, many-1, s.Resting)
	b.due("e")
	b.sweepAll("the sweeps where all rests have ended", many, nil)
	require.Equal(t, many, b.found().Free)

	b.fill("adding them again, with an expiry", many, time.Hour)
	b.due("x")
	b.sweepAll("an allocation and the sweeps where everything has expired", many, func() {
		_, err := b.TryAllocate(ctx, nil)
		require.ErrorIs(t, err, allocator.ErrBusy)
	})
	b.allFree(b.pool, 0)
	b.fill("adding to what is empty, with an expiry", many, time.Hour)
	b.due("x")
	b.sweepAll("the sweeps where everything has expired", many, nil)
	b.allFree(b.pool, 0)

	// It is as new after that.
	b.fill("adding to what is empty", 1000, 0)
	b.giveBack(b.allocate(b.pool, nil))
	b.allFree(b.pool, 1000)
}

// commands counts what the scripts of a step have called, beside themselves.
func (b *bed) commands(step func()) int {
	b.Helper()
	total := func() int {
		n, err := strconv.Atoi(b.info("stats", "total_commands_processed"))
		require.NoError(b, err)
		return n
	}
	before := total()
	step()
	return total() - before
}

// found are the counts of a pool that is whole and where nothing moves.
func (b *bigPool) found() allocator.Stats {
	b.Helper()
	found, err := b.Inspect(b.within(5 * patience))
	require.NoError(b, err)
	require.Empty(b, found.Problems)
	require.False(b, found.Moving)
	s := found.Stats
	require.Equal(b, s.Resources, s.Free+s.Leased+s.Resting, "%+v", s)
	return s
}

// memory is what the server uses for data, in bytes.
func (b *bed) memory() int {
	b.Helper()
	n, err := strconv.Atoi(b.info("memory", "used_memory_dataset"))
	require.NoError(b, err)
	return n
}

// cycles allocates and releases, again and again.
func (b *bed) cycles(p *pool, many int) time.Duration {
	b.Helper()
	ctx := b.within(patience)
	began := time.Now()
	for range many {
		a, err := p.Allocate(ctx, nil)
		require.NoError(b, err)
		require.NoError(b, a.Release(ctx))
	}
	return time.Since(began)
}

// A pool of a million is as fast as one of a hundred, and none of its scripts is long.
func TestAMillionResourcesAreAsFastAsAHundred(t *testing.T) {
	const few, many, rounds, cycles = 100, 1_000_000, 11, 300
	b := newBigPool(t)
	small, err := allocator.NewPool(b.pooler(allocator.Config{Lease: 10 * time.Minute}), "small", poolConfig{})
	require.NoError(t, err)
	b.add(small, numbered(few)...)
	before := b.memory()
	add := func(what string, p *pool) {
		scripts, _ := b.watch(what, func() { b.addAll(p, many, 0) })
		require.LessOrEqual(t, scripts, many/200+2, "more than one script for 200 of them")
	}
	add("adding a million", b.pool)
	t.Logf("%d bytes of the server for each", (b.memory()-before)/many)
	first := b.laps
	again, err := allocator.NewPool(b.pooler(allocator.Config{}), "again", poolConfig{})
	require.NoError(t, err)
	add("adding them to another pool", again)
	worst := ownTime(first, b.laps)
	t.Logf("adding a million: %d scripts, the longest %v of a processor, of two that did the same", len(first), worst.Round(10*time.Microsecond))
	require.Positive(t, worst)
	require.LessOrEqual(t, worst, longestScript)

	b.cycles(small, cycles)
	b.cycles(b.pool, cycles)
	var smalls, bigs []time.Duration
	var ratios []float64
	b.either("allocating and releasing", func() {
		for i := range rounds {
			// Side by side, and by turns the first, so that what else the machine does
			// meets both.
			var s, l time.Duration
			if i%2 == 0 {
				s, l = b.cycles(small, cycles), b.cycles(b.pool, cycles)
			} else {
				l, s = b.cycles(b.pool, cycles), b.cycles(small, cycles)
			}
			smalls, bigs, ratios = append(smalls, s), append(bigs, l), append(ratios, float64(s)/float64(l))
		}
	})
	slices.Sort(smalls)
	slices.Sort(bigs)
	slices.Sort(ratios)
	const middle = rounds // of twice as many
	each := func(all []time.Duration) time.Duration { return (all[middle] / cycles).Round(time.Microsecond) }
	t.Logf("allocate + release: %v with %d, %v with %d resources: %.2f of the speed (median of %d rounds, %.2f to %.2f)",
		each(smalls), few, each(bigs), many, ratios[middle], len(ratios), ratios[0], ratios[len(ratios)-1])
	require.GreaterOrEqual(t, ratios[middle], 0.8)
	b.either("counting a million", func() {
		s, err := b.Stats(b.within(patience))
		require.NoError(t, err)
		require.Equal(t, many, s.Free)
	})
}
