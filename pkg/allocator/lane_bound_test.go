package allocator_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// long is a wait lease beyond the tests of scripts that follow each other.
const long = time.Hour

// wants has a claim want something else: for one resource, or what a name is bound to, with so much
// patience (ms).
func wants(resource, bind string, patience int64) func(*engine.Record) {
	return func(r *engine.Record) {
		r.Wait, r.Lease = long, long
		r.Extra = fmt.Sprintf("o 0 3600000 %d %d:%s%s", patience, len(resource), resource, bind)
	}
}

// stands has a claim of a node without a process come, which must wait.
func (w *world) stands(node, claim string, wants func(*engine.Record)) {
	w.T.Helper()
	reply := w.acquireScript(node, claim, wants)
	require.Contains(w.T, []string{"queued", "joined"}, reply.Status())
}

// revision is what an operator's call sees of the pool.
func (w *world) revision() string {
	w.T.Helper()
	return millis(w.Field("rev"))
}

// bounded runs a script, and fails if it has dropped and granted more than one run may. It returns
// the reply.
func (w *world) bounded(script string, args ...string) scriptkit.Reply {
	w.T.Helper()
	before, held := w.Field("waiting"), w.Field("used")
	parked := w.parked()
	r := w.Call(script, append([]string{"60000", "berth:wake:", proxies}, args...)...)
	gone, granted := before-w.Field("waiting"), w.Field("used")-held
	require.LessOrEqual(w.T, max(gone, granted, int64(parked-w.parked())), int64(100), script)
	return r
}

// sweeps sweeps until nothing is left, as a caller does, and returns how many runs that took.
func (w *world) sweeps() int {
	w.T.Helper()
	for n := 1; n < 200; n++ {
		if r := w.bounded("pool_sweep", "x", "0"); !line.More(&r, 2) {
			return n
		}
	}
	w.T.Fatal("there is always more to sweep")
	return 0
}

// holds are the resources that are held, and by which claims.
func (w *world) holds() map[string]string {
	w.T.Helper()
	fields, err := w.Do("HGETALL", stateKey).AsStrMap()
	require.NoError(w.T, err)
	held := map[string]string{}
	for field, resource := range fields {
		if claim, ok := strings.CutPrefix(field, "r:"); ok {
			held[resource] = claim
		}
	}
	return held
}

// stood are many waiting claims, as a restore takes them: each for a resource of its own, in the order
// of their numbers.
func (w *world) stood(node string, from, to int, apart func(i int) string) {
	w.T.Helper()
	for ; from < to; from += 60 {
		args := []string{node, "1"}
		for i := from; i < min(from+60, to); i++ {
			ticket := w.Began.UnixMilli() - 100_000 + int64(i)
			r := record(node, wants(strings.TrimPrefix(apart(i), "- "), "", 0))
			r.Ticket = ticket
			args = append(args, fmt.Sprintf("%s.%d", node, i), fmt.Sprintf("254 %013d %s", ticket, apart(i)), state.Text(&r))
		}
		w.bounded("pool_restore", args...)
	}
}

// The process that removes it dies after one script.
func TestTheLaneOfARemovedResourceIsEmptiedWithoutItsCaller(t *testing.T) {
	type row struct {
		deaf func(*engine.Record) // what is wanted by the claims of a node that hears nothing
		opts *allocator.AllocateOptions
	}
	inEach(t, map[string]row{
		"named": {wants("a", "", 0), names("a")},
		"bound": {wants("", "anna", state.Forever), sticks("anna", berth.Forever)},
	}, func(t *testing.T, w *world, c row) {
		w.add("a", "b")
		w.bind("anna", "a", 0)
		holder, n := w.calm(), w.calm()
		holder.takes("a", nil)
		holder.takes("b", nil)
		for i := range 100 {
			w.stands("deaf", "deaf."+strconv.Itoa(i), c.deaf)
		}
		var waits []*wait
		for range 130 {
			waits = append(waits, n.queue(c.opts))
		}
		w.Advance(time.Second)
		r := w.bounded("pool_remove", w.revision(), "id", "a")
		require.True(t, line.More(&r, 2), "more is left")
		w.Advance(50 * ms)
		require.Zero(t, w.parked())
		for _, q := range waits {
			if c.opts.Resource != "" {
				require.False(t, q.Pending())
				require.ErrorIs(t, q.Err, berth.ErrAbsent)
			}
		}
		w.inspect()
	})
}

// A pool that was flushed is filled again, with half of what many wait for.
func TestHundredsWaitForAPoolThatIsFilledWithHalf(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const many = 400
		all := numbered(many)
		w.CallOn([]string{stateKey}, "pool_refresh", "turn", "60000", "0", "60000") // it has a Source
		w.stood("n", 0, many, func(i int) string { return "- " + all[i] })
		require.EqualValues(t, many, w.Field("waiting"))
		require.Equal(t, 1, w.sweeps())
		require.EqualValues(t, many, w.Field("waiting"), "it is not filled yet")
		r := w.bounded("pool_replace", "begin", w.revision(), "id")
		gen := millis(r.Int(1))
		for from := 0; from < many; from += 200 {
			args := []string{"0", "0", gen, "0", ""}
			for i := from; i < from+200; i += 2 {
				args = append(args, all[i])
			}
			if r = w.bounded("pool_add", args...); line.More(&r, 3) && from%400 == 0 {
				w.sweeps()
			}
		}
		for cursor := "0"; ; {
			r = w.bounded("pool_replace", "prune", gen, cursor)
			if cursor = r.Str(1); cursor == "0" {
				break
			}
		}
		require.LessOrEqual(t, w.sweeps(), many/2/25)
		held := w.holds()
		require.Len(t, held, many/2)
		for i := 0; i < many; i += 2 {
			require.Equal(t, fmt.Sprintf("n.%d", i), held[all[i]])
		}
		require.Zero(t, w.Field("waiting"))
		require.Zero(t, w.parked())
		w.inspect()
	})
}

// Many have been left over by a script that stopped at its bound. Neither those who stand in line behind them pass them,
// nor somebody who comes before they have been looked at.
func TestNobodyPassesALaneThatWasLeftOver(t *testing.T) {
	type row struct {
		policy  allocator.Policy
		inLine  int
		arrives string // the resource that is wanted by who comes
	}
	inEach(t, map[string]row{
		"those in line, the least recent": {allocator.LeastRecent, 3, ""},
		"those in line, the most recent":  {allocator.MostRecent, 3, ""},
		"those in line, at random":        {allocator.Random, 3, ""},
		"who wants any":                   {allocator.LeastRecent, 0, ""},
		"who wants the same":              {allocator.LeastRecent, 0, "r0150"},
	}, func(t *testing.T, w *world, c row) {
		require.NoError(t, w.ops().Set(t.Context(), proxies, "", allocator.Settings{Policy: c.policy}))
		all := numbered(200)
		w.stood("n", 0, len(all), func(i int) string { return "- " + all[i] })
		for i := range c.inLine {
			w.stands("g", "g."+strconv.Itoa(i), wants("", "", 0))
		}
		r := w.bounded("pool_add", append([]string{"0", "0", "0", "1", ""}, all...)...)
		require.True(t, line.More(&r, 3))
		require.NotEmpty(t, w.list())
		w.stands("late", "late.1", wants(c.arrives, "", 0))
		w.sweeps()
		held := w.holds()
		for i, key := range all {
			require.Equal(t, fmt.Sprintf("n.%d", i), held[key])
		}
		require.EqualValues(t, c.inLine+1, w.Field("waiting"))
		w.inspect()
	})
}

// Their waits for one resource end in one millisecond, those who came first last.
func TestManyWhoHaveWaitedLongEnoughAtOnceAreServedByTheirPlaces(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const many = 150
		w.add("a")
		w.occupy("holder")
		w.bind("anna", "a", 0)
		var claims []string
		for i := range many {
			claim := fmt.Sprintf("n.%03d", many-i) // their names are against the order as well
			w.stands("n", claim, wants("", "anna", int64(2000-i)))
			claims = append(claims, claim)
			w.Advance(ms)
		}
		w.add(numbered(20)...)
		w.Until(4 * time.Second)
		w.stands("late", "late.1", wants("", "", 0)) // behind them
		w.sweeps()
		require.ElementsMatch(t, append(claims[:20:20], "holder.1"), slices.Collect(maps.Values(w.holds())))
		require.Zero(t, w.parked())
		w.inspect()
	})
}
