package row

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth/test/bench/server"
)

// testEnv is an environment at smoke scale on a server of its own.
func testEnv(t *testing.T) *Env {
	t.Helper()
	addr, stop, err := server.Start(context.WithoutCancel(t.Context())) // until the last cleanup
	require.NoError(t, err)
	redis, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true})
	require.NoError(t, err)
	env := NewEnv(redis, addr, Scale{For: 100 * time.Millisecond, Smoke: true})
	t.Cleanup(func() {
		env.Close()
		redis.Close()
		require.NoError(t, stop())
	})
	return env
}

func TestQuantileIsTheNearestRank(t *testing.T) {
	values := []time.Duration{5, 1, 4, 2, 3, 6, 10, 9, 8, 7}
	for q, want := range map[float64]time.Duration{0: 1, 0.5: 5, 0.51: 6, 0.9: 9, 0.99: 10, 1: 10} {
		require.Equal(t, want, quantile(values, q), q)
	}
	require.Zero(t, quantile(nil, 0.5))
}

func TestCountsAreTheDifferenceWithoutHousekeeping(t *testing.T) {
	before, err := parseCounts("txt:# Commandstats\r\n" +
		"cmdstat_evalsha:calls=10,usec=100,usec_per_call=10.00,rejected_calls=0,failed_calls=0\r\n" +
		"cmdstat_set:calls=7,usec=7,usec_per_call=1.00,rejected_calls=0,failed_calls=0\r\n")
	require.NoError(t, err)
	after, err := parseCounts("# Commandstats\r\n" +
		"cmdstat_evalsha:calls=12,usec=130,usec_per_call=10.83,rejected_calls=0,failed_calls=0\r\n" +
		"cmdstat_eval:calls=1,usec=5,usec_per_call=5.00,rejected_calls=0,failed_calls=0\r\n" +
		"cmdstat_set:calls=7,usec=7,usec_per_call=1.00,rejected_calls=0,failed_calls=0\r\n" +
		"cmdstat_get:calls=4,usec=2,usec_per_call=0.50,rejected_calls=0,failed_calls=0\r\n" +
		"cmdstat_info:calls=4,usec=2,usec_per_call=0.50,rejected_calls=0,failed_calls=0\r\n" +
		"cmdstat_client|list:calls=4,usec=2,usec_per_call=0.50,rejected_calls=0,failed_calls=0\r\n")
	require.NoError(t, err)
	ran := after.Since(before)
	require.Equal(t, Counts{"evalsha": {2, 30}, "eval": {1, 5}, "get": {4, 2}}, ran)
	require.InDelta(t, 3, ran.Scripts(), 0)
	require.InDelta(t, 7, ran.Commands(), 0)
	require.Equal(t, Stat{Calls: 6, Micros: 32}, ran.Of("evalsha", "get", "set"))

	_, err = parseCounts("cmdstat_get:calls=many\r\n")
	require.Error(t, err)
}

func TestAllRowsAreWholeAndTheirOwn(t *testing.T) {
	ids := map[string]bool{}
	for _, r := range All() {
		require.False(t, ids[r.ID], r.ID)
		ids[r.ID] = true
		for column := range r.Skip {
			require.Contains(t, r.Columns, column, r.ID)
		}
		metrics := map[string]bool{}
		for _, m := range r.Metrics {
			require.False(t, metrics[m.ID], "%s: %s", r.ID, m.ID)
			metrics[m.ID] = true
			require.NotEmpty(t, r.With(m), "%s: %s", r.ID, m.ID)
			for _, b := range m.Budgets {
				if b.Column != "" {
					require.Contains(t, r.With(m), b.Column, "%s: %s", r.ID, m.ID)
				}
				for _, column := range b.Against {
					require.Contains(t, r.With(m), column, "%s: %s", r.ID, m.ID)
				}
			}
		}
		for _, m := range r.Metrics {
			for _, b := range m.Budgets {
				require.True(t, b.Metric == "" || metrics[b.Metric], "%s: %s", r.ID, m.ID)
			}
		}
	}
}

func TestBesideBusyLoopsABudgetIsATenthEasier(t *testing.T) {
	r := handoffRows()[0]
	busy := beside(r)
	require.Equal(t, []string{Berth, publish}, busy.Columns)
	require.Len(t, busy.Metrics, 1)
	require.Equal(t, []Budget{{Column: Berth, Against: []string{publish}, Limit: 1.54}}, busy.Metrics[0].Budgets)
	require.InDelta(t, 1.4, r.Metrics[0].Budgets[0].Limit, 0)
	require.InDelta(t, 18, beside(contendedRows()[0]).Metrics[0].Budgets[0].Limit, 0)
}

func TestWhatIsKeptIsOpenedOnceAndClosedLastFirst(t *testing.T) {
	env := NewEnv(nil, "", Scale{})
	var log []string
	open := func(what string) func() (string, func(), error) {
		return func() (string, func(), error) {
			log = append(log, "open "+what)
			return what, func() { log = append(log, "close "+what) }, nil
		}
	}
	for range 2 {
		for _, what := range []string{"a", "b"} {
			got, err := Kept(env, what, open(what))
			require.NoError(t, err)
			require.Equal(t, what, got)
		}
	}
	_, err := Kept(env, "c", func() (string, func(), error) { return "", nil, io.ErrUnexpectedEOF })
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	env.Close()
	require.Equal(t, []string{"open a", "open b", "close b", "close a"}, log)
}

func TestAChildEndsWithItsParent(t *testing.T) {
	env := testEnv(t)
	locker, err := env.Locker(Berth)
	require.NoError(t, err)
	name := env.Name("held")
	unlock, err := locker.Lock(t.Context(), name)
	require.NoError(t, err)

	child, err := env.Start(t.Context(), workerJob, workerArgs{Column: Berth, Addr: env.Addr, Name: name, Warm: env.Name("warm")})
	require.NoError(t, err)
	require.NoError(t, child.Receive(&proceed{}))
	require.NoError(t, child.Send(proceed{})) // it waits for the lock from now on
	require.NoError(t, child.Close(), "the end of its standard input is the end of its parent")
	require.NoError(t, unlock())
}

func TestAChildsErrorReachesItsParent(t *testing.T) {
	env := NewEnv(nil, "", Scale{})
	child, err := env.Start(context.Background(), "no such job", nil)
	require.NoError(t, err)
	require.ErrorIs(t, child.Receive(&proceed{}), io.EOF)
	require.ErrorContains(t, child.Close(), "exit status 1")
}

func TestMain(m *testing.M) {
	RunChild()
	// rueidis looks at a server's topology once more some time after it was closed.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"))
}

func TestTurnsCountAsFarAsTheyLieWithinTheSpan(t *testing.T) {
	at := func(ns int64) time.Time { return time.Unix(0, ns) }
	result := tallyTurns([][]turn{
		{
			{Asked: 0, Got: 90, Held: 3},    // over before the span began
			{Asked: 95, Got: 110, Held: 4},  // waited 10 of it within
			{Asked: 115, Got: 120, Held: 5}, // the same worker again: no hand-off
			{Asked: 125, Got: 160, Held: 6}, // after the other one
			{Asked: 170, Got: 230, Held: 7}, // granted after the span: no lock, 30 of it within
			{Asked: 240, Got: 250, Held: 8}, // after the span
			{Asked: 260, Got: 270, Held: 9, Lost: true},
		},
		{
			{Asked: 50, Got: 140, Held: 10},
			{Asked: 150, Got: 210, Lost: true}, // cut off: 50
		},
		{
			{Asked: 100, Got: 205, Lost: true}, // nothing at all: 100
		},
	}, at(100), at(200))
	require.Equal(t, 4, result.locks)
	require.Equal(t, 3, result.handoffs)
	require.Equal(t, []int{3, 1, 0}, result.shares)
	require.Equal(t, []time.Duration{10, 5, 35, 30, 40, 50, 100}, result.waits)
	require.Equal(t, []time.Duration{35, 50, 100}, result.longest)
	require.Equal(t, []time.Duration{4, 5, 6, 10}, result.holds)

	metrics := contestResult{tally: result, span: 2 * time.Second, scripts: 2, trips: 3}.metrics()
	require.Equal(t, map[string]float64{
		"handoffs": 1.5, "locks": 2, "p50": 35e-6, "p99": 100e-6, "max": 100e-6, "longest": 50e-6,
		"share": 0, "starved": 1, "scripts": 2, "trips": 3,
	}, metrics)
}
