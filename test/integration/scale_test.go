package integration

import (
	"fmt"
	"os"
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
	const many, hour = 20_000, time.Hour
	w, d := clocked(t)
	b := &bigPool{world: w.turn().of(keyspace.Pool)}
	b.pool = b.world.pool(node.Config{Lease: hour})
	b.fill("adding", many, 1000*hour)
	owner := b.spawn(100 * hour)
	hoarded := owner.send(order{Do: "hoard", Name: proxies, Count: many - 1, Rest: hour})
	b.Await("all but one are leased", func() bool { return len(hoarded) > 0 })
	require.Empty(t, owner.hear(hoarded).Err)
	owner.kill()
	ctx := b.Within(4 * patience)
	a, err := b.TryAllocate(ctx, &allocator.AllocateOptions{Lease: 10 * hour, NoRenew: true})
	require.NoError(t, err)
	_, err = b.TryAllocate(ctx, nil)
	require.ErrorIs(t, err, berth.ErrBusy)

	// One that has expired among them all, and has rested since.
	expired := a.Resource()
	d.SetClock(t, 12*hour)
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
	d.SetClock(t, 100*hour+hour/2)
	b.sweepAll("the sweeps where all leases have expired, and one rest has ended", many)
	require.Equal(t, allocator.Inspection{Resources: many, Resting: many - 1, Free: 1}, b.inspected(b.pool))
	d.SetClock(t, 102*hour)
	b.sweepAll("the sweeps where all rests have ended", many-1)
	require.Equal(t, allocator.Inspection{Resources: many, Free: many}, b.inspected(b.pool))
	d.SetClock(t, 1001*hour)
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
