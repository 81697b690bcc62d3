package integration

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

// longestScript is what one script may have of a processor, whatever the pool has. None
// needs a quarter of it; one that passed over all that has expired would need many times
// as much.
const longestScript = 50 * time.Millisecond

// bigPool is a large pool on a server of its own.
type bigPool struct {
	*world
	*pool
	longest time.Duration // what the server has had of a processor in a lap
	last    time.Duration // what it had had of it at the last one
}

// watch runs a step, which laps after each script or is one, and returns how many scripts
// that were. How long they took by the clock is the machine's.
func (b *bigPool) watch(what string, step func()) (scripts int) {
	b.Helper()
	b.longest, b.last = 0, b.processor()
	start := time.Now()
	before := b.runs()
	step()
	scripts = b.runs() - before
	if scripts == 1 {
		b.lap()
	}
	b.Logf("%s: %d scripts in %v, the longest %v of a processor",
		what, scripts, time.Since(start).Round(time.Millisecond), b.longest.Round(10*time.Microsecond))
	require.LessOrEqual(b, b.longest, longestScript, what)
	return scripts
}

// newLua gives the server a new Lua. What a script of the test has left in it would be
// collected by those that come next.
func (w *world) newLua() {
	w.Helper()
	w.do("SCRIPT", "FLUSH", "SYNC")
	w.load()
}

// lap ends a part of a step: at least what its scripts have taken.
func (b *bigPool) lap() {
	had := b.processor()
	b.longest, b.last = max(b.longest, had-b.last), had
}

// processor is how long the server's main thread has had a processor: 0 where the machine
// does not say.
func (w *world) processor() (had time.Duration) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/schedstat", w.server.PID()))
	if err == nil {
		_, err = fmt.Sscan(string(text), &had)
	}
	if err != nil {
		return 0
	}
	return had
}

// fill adds so many resources.
func (b *bigPool) fill(what string, many int, expiry time.Duration) {
	b.Helper()
	scripts := b.watch(what, func() { b.addAll(many, expiry) })
	require.LessOrEqual(b, scripts, many/200+2, "more than one script for 200 of them")
}

// addAll adds so many resources, a lap each step.
func (b *bigPool) addAll(many int, expiry time.Duration) {
	b.Helper()
	told := 0
	change, err := b.Add(b.Within(3*time.Minute), numbered(many), &allocator.AddOptions{
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
func (w *world) due(letter string) {
	w.Helper()
	const script = `
local t = redis.call("TIME")
local now = t[1] * 1000 + math.floor(t[2] / 1000) - 1
local from = ({ h = 2^44, e = 262 * 2^44, x = 264 * 2^44 })[ARGV[1]]
for _, member in ipairs(redis.call("ZRANGEBYSCORE", KEYS[1], from, from + 2^44 - 1)) do
  redis.call("ZADD", KEYS[1], string.format("%.0f", from + now), member)
  local field = "i" .. string.sub(member, 3)
  local item = ARGV[1] ~= "h" and redis.call("HGET", KEYS[2], field)
  if item then
    local max, expiry, ends, rest = string.match(item, "^(%d+) (%d+) (%d+) (.*)$")
    if ARGV[1] == "e" then ends = now else expiry = now end
    redis.call("HSET", KEYS[2], field, string.format("%s %.0f %.0f %s", max, expiry, ends, rest))
  end
end
if ARGV[1] == "h" then
  local values = redis.call("HGET", KEYS[3], "v") -- which say when the first hold ends
  redis.call("HSET", KEYS[3], "v", string.sub(values, 1, 33) .. string.format("%013.0f", now) .. string.sub(values, 47))
end`
	w.do("EVAL", script, "3", w.lineKey(proxies), w.itemsKey(proxies), w.stateKey(proxies), letter)
	w.newLua()
}

// expireOne ends one lease from among many, and its cooldown, and returns the resource.
func (w *world) expireOne(cooldown time.Duration) string {
	w.Helper()
	const script = `
local found = redis.call("ZRANGEBYSCORE", KEYS[1], 2^44, 2^45 - 1, "LIMIT", 12345, 1)[1]
local t = redis.call("TIME")
local ends = t[1] * 1000 - ARGV[1]
redis.call("ZADD", KEYS[1], string.format("%.0f", 2^44 + ends), found)
local values = redis.call("HGET", KEYS[2], "v") -- which say when the first hold ends
redis.call("HSET", KEYS[2], "v", string.sub(values, 1, 33) .. string.format("%013.0f", ends) .. string.sub(values, 47))
return redis.call("HGET", KEYS[2], "r:" .. string.sub(found, 3))`
	ms := strconv.FormatInt(2*cooldown.Milliseconds(), 10)
	resource, err := w.do("EVAL", script, "2", w.lineKey(proxies), w.stateKey(proxies), ms).ToString()
	require.NoError(w, err)
	return resource
}

// sweepAll sweeps until nothing is left. That must take as many scripts as it has to:
// one drops 100 at the most.
func (b *bigPool) sweepAll(what string, many int) {
	b.Helper()
	ctx, sweeper := b.Within(2*patience), b.sweeper()
	scripts := b.watch(what, func() {
		for more := true; more; b.lap() {
			next, err := sweeper.Sweep(ctx, proxies)
			require.NoError(b, err)
			more = next.More
		}
		dropped, err := b.pool.node.Operator().Sweep(ctx, keyspace.Pool, proxies)
		require.NoError(b, err)
		require.Zero(b, dropped, "that was not all")
	})
	require.GreaterOrEqual(b, scripts, many/100)
	require.LessOrEqual(b, scripts, many/100+many/1000)
}

// As many leases, then rests, then resources, that have all ended and that nobody has
// swept.
func TestManyExpiredEntriesCostNoScriptMoreThanTheSweep(t *testing.T) {
	const many, cooldown = 20_000, time.Hour
	b := &bigPool{world: private(t).turn()}
	b.kind = keyspace.Pool
	b.pool = b.world.pool(node.Config{Lease: time.Hour})
	b.fill("adding", many, time.Hour)
	owner := b.spawn(time.Hour)
	hoarded := owner.send(order{Do: "hoard", Name: proxies, Count: many, Rest: cooldown})
	b.Await("all are leased", func() bool { return len(hoarded) > 0 })
	require.Empty(t, owner.hear(hoarded).Err)
	owner.kill()
	ctx := b.Within(4 * patience)
	_, err := b.TryAllocate(ctx, nil)
	require.ErrorIs(t, err, berth.ErrBusy)

	// One that has expired among them all.
	expired := b.expireOne(cooldown)
	var a *allocation
	scripts := b.watch("an allocation where one lease of all has expired", func() {
		a, err = b.TryAllocate(ctx, nil)
		require.NoError(t, err)
		require.Equal(t, expired, a.Resource())
	})
	require.Equal(t, 1, scripts)
	commands := b.commands(func() { b.release(a) })
	require.NoError(t, b.pool.Rest(ctx, expired, 0, "", nil)) // the cooldown is the pool's, for every process
	commands += b.commands(func() { a = b.allocate(b.pool, nil) })
	t.Logf("a release and an allocation are %d commands", commands)
	require.Less(t, commands, 50, "they pass over the pool")
	b.release(a)

	// All of them.
	b.due("h")
	b.sweepAll("the sweeps where all leases have expired", many)
	require.Equal(t, allocator.Inspection{Resources: many, Resting: many}, b.inspected(b.pool))
	b.due("e")
	b.sweepAll("the sweeps where all rests have ended", many)
	require.Equal(t, allocator.Inspection{Resources: many, Free: many}, b.inspected(b.pool))
	b.due("x")
	b.sweepAll("the sweeps where everything has expired", many)
	b.allFree(b.pool, 0)

	// It is as new after that.
	b.fill("adding to what is empty", 1000, 0)
	a = b.allocate(b.pool, nil)
	b.release(a)
	require.NoError(t, b.pool.Rest(ctx, a.Resource(), 0, "", nil))
	b.allFree(b.pool, 1000)
}

// commands counts what the scripts of a step have called, beside themselves.
func (w *world) commands(step func()) int {
	w.Helper()
	before := w.number("stats", "total_commands_processed")
	step()
	return w.number("stats", "total_commands_processed") - before
}
