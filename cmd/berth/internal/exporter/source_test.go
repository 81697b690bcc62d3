package exporter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/once"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

func TestWhatIsTold(t *testing.T) {
	inWorld(t, func(w *world) {
		ctx := context.Background()
		w.take("gpu:1", 2)
		w.Advance(time.Second)
		w.take("gpu:0", 1)
		w.take("gpu:2", 1)
		w.Advance(3 * time.Second)
		w.queue("gpu:2", 1)
		w.Advance(2 * time.Second)
		w.queue("gpu:2", 1)
		_, err := qlock.New(w.n, qlock.Config{}).Lock(ctx, `night"ly\,x="`, nil)
		require.NoError(w.T, err)
		pool := allocator.New(w.n, "proxies", allocator.Config[string]{})
		_, err = pool.Add(ctx, []string{"a", "b", "c", "d"}, nil)
		require.NoError(w.T, err)
		_, err = pool.Allocate(ctx, nil)
		require.NoError(w.T, err)
		require.NoError(w.T, pool.Rest(ctx, "b", time.Hour, "broken", nil))
		err = w.n.Operator().Pause(ctx, keyspace.Pool, "proxies", time.Hour, "")
		require.NoError(w.T, err)
		w.Advance(time.Second)

		got := w.scrape()
		sem, lock, proxies := `{name_class="gpu:*",primitive="sem"}`, `{name_class="night\"ly\\,x=\"",primitive="lock"}`, `{name_class="proxies",primitive="pool"}`
		want := map[string]float64{
			"names" + sem: 3, "names" + lock: 1, "names" + proxies: 1,
			"names_full" + sem: 2, "names_full" + lock: 1, "names_full" + proxies: 0,
			"names_capacity" + sem: 4, "names_capacity" + lock: 1, "names_capacity" + proxies: 4,
			"names_held" + sem: 3, "names_held" + lock: 1, "names_held" + proxies: 1,
			"names_waiting" + sem: 2, "names_waiting" + lock: 0, "names_waiting" + proxies: 0,
			"names_oldest_wait_seconds" + sem: 3, "names_oldest_wait_seconds" + lock: 0, "names_oldest_wait_seconds" + proxies: 0,
			"names_longest_hold_seconds" + sem: 7, "names_longest_hold_seconds" + lock: 1, "names_longest_hold_seconds" + proxies: 1,
			`names_resources{name_class="proxies",state="free"}`:    2,
			`names_resources{name_class="proxies",state="leased"}`:  1,
			`names_resources{name_class="proxies",state="resting"}`: 1,
		}
		require.Equal(w.T, want, well(w.T, about(got, "names")))
		set := about(got, "paused")
		require.InDelta(w.T, 1, set["paused_age_seconds"+proxies], 0.01, "a change has a number of its own, in ms")
		delete(set, "paused_age_seconds"+proxies)
		require.Equal(w.T, map[string]float64{
			"paused" + sem: 0, "paused" + lock: 0, "paused" + proxies: 1,
			"paused_age_seconds" + sem: 0, "paused_age_seconds" + lock: 0,
		}, set)
		require.Empty(w.T, about(got, "cycles"), "nobody has searched yet")
		require.Equal(w.T, map[string]float64{
			"exporter_age_seconds": 0, "exporter_walk_age_seconds": 0, "exporter_complete": 1, "exporter_waits_left_out": 0,
			"exporter_names_in_part": 0, "exporter_problems": 0, "exporter_reading_seconds": 0,
			`exporter_readings_total{outcome="answered"}`: 1, `exporter_readings_total{outcome="silent"}`: 0,
		}, about(got, "exporter"))
		require.InDelta(w.T, 1, got["up"], 0)

		w.Advance(every - 1)
		later := w.scrape()
		require.InDelta(w.T, (every - 1).Seconds(), later["exporter_age_seconds"], 0, "no new reading")
		require.Equal(w.T, want, well(w.T, about(later, "names")))
		require.Empty(w.T, w.said)
	})
}

// well requires that no name is stuck, for each reason that was looked for, and leaves that out.
func well(t *testing.T, told map[string]float64) map[string]float64 {
	t.Helper()
	for series, n := range about(told, "names_stuck") {
		require.Zero(t, n, series)
		delete(told, series)
	}
	return told
}

// stuck are the names that are told to be.
func stuck(told map[string]float64) map[string]float64 {
	found := about(told, "names_stuck")
	maps.DeleteFunc(found, func(_ string, n float64) bool { return n == 0 })
	return found
}

// knot has two owners wait for each other.
func (w *world) knot(a, b string) {
	w.T.Helper()
	locks := qlock.New(w.n, qlock.Config{})
	for _, name := range []string{a, b} {
		_, err := locks.Lock(berth.WithOwner(context.Background(), "holds "+name), name, nil)
		require.NoError(w.T, err)
	}
	for name, owner := range map[string]string{a: "holds " + b, b: "holds " + a} {
		go func() { _, _ = locks.Lock(berth.WithOwner(context.Background(), owner), name, nil) }()
	}
}

// TestWhatIsStuckIsToldByItsReason of names that are all read at once, and of more, of which a walk is under way.
func TestWhatIsStuckIsToldByItsReason(t *testing.T) {
	for _, more := range []int{0, 5_000} {
		t.Run(fmt.Sprint(more), func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.thinLocks(more)
				forever, err := qlock.New(w.n, qlock.Config{}).Lock(context.Background(), "left:1", &qlock.LockOptions{Lease: berth.Forever})
				require.NoError(w.T, err)
				_, err = forever.Detach(context.Background())
				require.NoError(w.T, err)
				w.Do("SET", "berth:sem:{strange}:state", "mine")
				w.knot("night:1", "night:2")
				w.Advance(time.Second)
				first := w.scrape()
				require.Empty(w.T, about(first, "cycles"))
				require.NotContains(w.T, first, `names_stuck{name_class="left:*",primitive="lock",reason="cycle"}`, "nobody has searched yet")
				w.until(func(told map[string]float64) bool { return told["exporter_walk_age_seconds"] > 0 || more == 0 })
				go func() { _, _ = qlock.New(w.n, qlock.Config{}).Lock(context.Background(), "left:1", nil) }() // now it is missed
				w.Advance(time.Second)
				got := w.until(func(told map[string]float64) bool { return len(stuck(told)) == 3 })
				require.Equal(w.T, map[string]float64{
					`names_stuck{name_class="left:*",primitive="lock",reason="detached"}`: 1,
					`names_stuck{name_class="night:*",primitive="lock",reason="cycle"}`:   2,
					`names_stuck{name_class="strange",primitive="sem",reason="foreign"}`:  1,
				}, stuck(got))
				require.Equal(w.T, map[string]float64{`cycles{certain="true"}`: 1, `cycles{certain="false"}`: 0}, about(got, "cycles"))
				require.Contains(w.T, got, `names_stuck{name_class="left:*",primitive="lock",reason="cycle"}`)
				require.InDelta(w.T, 0, got["exporter_cycles_in_part"], 0)
			})
		})
	}
}

func TestCyclesAreSearchedForBesideTheReadings(t *testing.T) {
	inWorld(t, func(w *world) {
		var searches, hangs atomic.Int64
		hangs.Store(int64(time.Second))
		w.source.search.find = func(context.Context, *inspect.CycleOptions) (found inspect.Cycles, err error) {
			searches.Add(1)
			lasts := time.Duration(hangs.Load())
			if lasts == 0 {
				return found, errors.New("it is away")
			}
			began := time.Now()
			<-time.After(lasts)
			return inspect.Cycles{At: began, Cycles: []inspect.Cycle{{Certain: true}, {}}, Partial: true}, nil
		}
		began := time.Now()
		require.Empty(w.T, about(w.scrape(), "cycles"))
		require.Equal(w.T, began, time.Now(), "no reading waits for it")
		want := map[string]float64{`cycles{certain="true"}`: 1, `cycles{certain="false"}`: 1}
		for age := every; age <= 150*time.Second; age += every {
			got := w.anew()
			require.Equal(w.T, want, about(got, "cycles"))
			require.InDelta(w.T, age.Seconds(), got["exporter_cycles_age_seconds"], 0)
			require.InDelta(w.T, 1, got["exporter_cycles_in_part"], 0)
		}
		require.EqualValues(w.T, 2, searches.Load(), "one of a second is made once in 150")
		w.Advance(time.Second)
		hangs.Store(0)
		w.Advance(149 * time.Second)
		w.scrape()
		got := w.anew()
		require.EqualValues(w.T, 3, searches.Load())
		require.Equal(w.T, want, about(got, "cycles"), "of the last that was answered")
		require.InDelta(w.T, 160, got["exporter_cycles_age_seconds"], 1)
		require.InDelta(w.T, 1, got["exporter_problems"], 0)
		require.Equal(w.T, []string{"the search for cycles: it is away"}, w.said)
	})
}

func TestWhatIsToldOfDrains(t *testing.T) {
	inWorld(t, func(w *world) {
		none := map[string]float64{"drains": 0}
		require.Equal(w.T, none, about(w.scrape(), "drain"))
		space, err := keyspace.New("berth")
		require.NoError(w.T, err)
		drain := func(field, word string, lasts time.Duration) {
			now, ends := time.Now(), int64(0)
			if lasts > 0 {
				ends = now.Add(lasts).UnixMilli()
			}
			w.Do("HSET", space.Notice(), field, fmt.Sprintf("%d 0 %d %s", now.UnixMilli(), ends, word))
		}
		drain("l:host-7/*", "drain", 0)
		drain("l:host-9/*", "stop", 0)
		drain("l:free", "drain", 0)
		w.Advance(time.Minute)
		drain("l:host-8/*", "drain for the new kernel", time.Hour)
		drain("n:31a807f99156c21e", "drain", time.Minute)
		w.Advance(every)
		want := map[string]float64{
			"drains": 4, `drain_age_seconds{target="label \"free\""}`: 70,
			`drain_age_seconds{target="label \"host-*/*\""}`: 70, `drain_left_seconds{target="label \"host-*/*\""}`: 3590,
			`drain_age_seconds{target="node *"}`: 10, `drain_left_seconds{target="node *"}`: 50,
		}
		require.Equal(w.T, want, about(w.scrape(), "drain"))

		w.link.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "HSCAN" {
				return link.Refuse("NOPERM User reads has no permissions to run the 'hscan' command")
			}
			return link.Pass
		})
		got := w.anew()
		require.Empty(w.T, about(got, "drain"), "it is not known whether there are any")
		require.InDelta(w.T, 1, got["exporter_problems"], 0)
		w.link.OnCommand(nil)
		w.Do("DEL", space.Notice())
		require.Equal(w.T, none, about(w.anew(), "drain"))
	})
}

func TestWhatIsToldOfRuns(t *testing.T) {
	inWorld(t, func(w *world) {
		ran := func(name string, every time.Duration, failure error) {
			w.T.Helper()
			job := once.New(w.n, name, once.Config{Every: every, Attempts: 9, RetryAfter: time.Second})
			result, err := job.Do(context.Background(), func(context.Context, *once.Run) error { return failure })
			require.ErrorIs(w.T, err, failure)
			require.Equal(w.T, once.Ran, result.Status)
		}
		broken := errors.New("broken")
		require.Zero(w.T, time.Now().UnixNano()%(24*time.Hour).Nanoseconds(), "a day, and an hour, begin")
		midnight := float64(time.Now().Unix())
		ran("never", time.Hour, broken)
		ran("report:1", 24*time.Hour, nil)
		w.Advance(500 * time.Millisecond)
		ran("report:2", time.Hour, nil)
		w.Do("HSET", "berth:once:{newer}:state", "fmt", "2")
		want := map[string]float64{
			`names{name_class="report:*",primitive="once"}`: 2, `names{name_class="never",primitive="once"}`: 1,
			`names{name_class="newer",primitive="once"}`: 1, `names_stuck{name_class="newer",primitive="once",reason="incompatible"}`: 1,
			`once_failed{name_class="report:*"}`: 0, `once_failed{name_class="never"}`: 1, `once_failed{name_class="newer"}`: 0,
			`once_period_seconds{name_class="report:*"}`: 86400, `once_period_seconds{name_class="never"}`: 3600,
			`once_last_success_timestamp_seconds{name_class="report:*"}`: midnight,
			`once_due_timestamp_seconds{name_class="report:*"}`:          midnight + 2*3600,
			`once_due_timestamp_seconds{name_class="never"}`:             midnight + 3600,
		}
		runs := func(told map[string]float64) map[string]float64 {
			found := about(told, "once")
			for series, v := range about(told, "names") {
				if strings.Contains(series, "once") && (v > 0 || !strings.Contains(series, "stuck")) {
					found[series] = v
				}
			}
			return found
		}
		require.Equal(w.T, want, runs(w.scrape()))

		w.Advance(time.Hour)
		ran("report:2", time.Hour, broken)
		failed := w.scrape()
		want[`once_failed{name_class="report:*"}`] = 1
		require.Equal(w.T, want, runs(failed), "the success is remembered")
		w.Advance(time.Second)
		ran("report:2", time.Hour, nil)
		want[`once_failed{name_class="report:*"}`], want[`once_due_timestamp_seconds{name_class="report:*"}`] = 0, midnight+3*3600
		require.Equal(w.T, want, runs(w.anew()))

		w.Advance(3 * time.Hour) // from the last run of report:2 on
		gone := runs(w.scrape())
		require.InDelta(w.T, midnight+48*3600, gone[`once_due_timestamp_seconds{name_class="report:*"}`], 0, "one is left")
		require.NotContains(w.T, gone, `once_due_timestamp_seconds{name_class="never"}`, "and the series ends with the record")
		require.InDelta(w.T, 1, w.scrape()["exporter_complete"], 0)
	})
}

func TestASilentServerIsToldInTimeAndNothingElseOfIt(t *testing.T) {
	inWorld(t, func(w *world) {
		w.take("gpu:1", 1)
		require.InDelta(w.T, 1, w.scrape()["up"], 0)
		w.link.Stall()
		w.Advance(every)
		began := time.Now()
		silent := w.scrape()
		require.LessOrEqual(w.T, time.Since(began), within)
		require.InDelta(w.T, 0, silent["up"], 0)
		require.Empty(w.T, about(silent, "names"))
		require.Equal(w.T, []string{"exporter_age_seconds", "exporter_problems", "exporter_reading_seconds", "exporter_readings_total", "server_up", "up"}, metricsOf(silent))
		require.Len(w.T, w.said, 1)
		w.link.Flow()
		back := w.anew()
		require.InDelta(w.T, 1, back["up"], 0)
		require.InDelta(w.T, 1, back[`names_held{name_class="gpu:*",primitive="sem"}`], 0)
		require.InDelta(w.T, 1, back[`exporter_readings_total{outcome="silent"}`], 0)
	})
}

// thinLocks are so many locks that are held for an hour.
func (w *world) thinLocks(n int) {
	w.T.Helper()
	now := time.Now()
	space, err := keyspace.New("berth")
	require.NoError(w.T, err)
	text := fmt.Sprintf("%016d %013d node.claim - 1 r 3600000 3600000 0 0 0:0:0:", now.UnixMicro(), now.UnixMilli())
	for i := 0; i < n; {
		words := []string{"MSET"}
		for ; i < n && len(words) < 1000; i++ {
			words = append(words, space.State(keyspace.Lock, fmt.Sprintf("user:%d", i)), text)
		}
		w.Do(words...)
	}
}

// fatNames are so many semaphores of which one permit is held: what most commands are sent for.
func (w *world) fatNames(n int) {
	w.T.Helper()
	long := &semaphore.AcquireOptions{Lease: time.Hour, NoRenew: true}
	_, err := semaphore.New(w.n, "gpu", 2, semaphore.Config{}).TryAcquire(context.Background(), long)
	require.NoError(w.T, err)
	space, err := keyspace.New("berth")
	require.NoError(w.T, err)
	for i := range n {
		name := fmt.Sprintf("user:%d", i)
		w.Do("COPY", w.State, space.State(keyspace.Sem, name))
		w.Do("COPY", w.Line, space.Line(keyspace.Sem, name))
	}
}

// runs are so many names of which a run is kept that has failed.
func (w *world) runs(n int) {
	w.T.Helper()
	space, err := keyspace.New("berth")
	require.NoError(w.T, err)
	for i := range n {
		w.Do("HSET", space.State(keyspace.Once, fmt.Sprintf("user:%d", i)), "fmt", "1", "run", "1000 2000 7 1 1001 1002 0 0 failed node 0:")
	}
}

const (
	// commandsMost is how many commands a reading may send, whatever there is: 4 pages of up to 1000 names and 200 names
	// that are waited for, each at commandsEach.
	commandsMost = 4_200 * commandsEach
	commandsEach = 12
)

func TestAScrapeCostsABoundedNumberOfCommands(t *testing.T) {
	for _, tt := range []struct {
		what  string
		names int
		kind  keyspace.Kind
		make  func(w *world, n int)
		whole bool // all are read at once
		most  int  // how many commands
	}{
		{"10 locks", 10, keyspace.Lock, (*world).thinLocks, true, 500},
		{"1 000 locks", 1_000, keyspace.Lock, (*world).thinLocks, true, 3_000},
		{"10 000 locks", 10_000, keyspace.Lock, (*world).thinLocks, false, 6_000},
		{"2 100 semaphores", 2_100, keyspace.Sem, (*world).fatNames, false, 2_100 * commandsEach},
		{"1 000 runs", 1_000, keyspace.Once, (*world).runs, true, 3_000},
		{"10 000 runs", 10_000, keyspace.Once, (*world).runs, false, 6_000},
	} {
		t.Run(tt.what, func(t *testing.T) {
			inWorld(t, func(w *world) {
				tt.make(w, tt.names)
				for i := range 20 {
					w.take(fmt.Sprintf("nightly:%d", i), 1)
					w.queue(fmt.Sprintf("nightly:%d", i), 1)
				}
				w.Advance(time.Second)
				users := `{name_class="user:*",primitive="` + string(tt.kind) + `"}`
				readings, walked := 0, 0.0
				for ; readings < 20 && walked == 0; readings++ {
					w.link.Reset()
					got := w.anew()
					sent := 0
					for n := range maps.Values(w.link.Counts()) {
						sent += n
					}
					w.T.Logf("reading %d: %d commands, %v", readings, sent, w.link.Counts())
					require.LessOrEqual(w.T, sent, min(tt.most, commandsMost))
					require.InDelta(w.T, 20, got[`names_waiting{name_class="nightly:*",primitive="sem"}`], 0, "who waits is known each time")
					walked = got["names"+users]
					require.Equal(w.T, tt.whole, got["exporter_complete"] == 1)
				}
				require.InDelta(w.T, tt.names, walked, 0, "the walk comes to its end")
				require.Equal(w.T, tt.whole, readings == 1)
				got := w.anew()
				if tt.kind == keyspace.Once {
					require.InDelta(w.T, tt.names, got[`once_failed{name_class="user:*"}`], 0, "also while the next one is under way")
				} else {
					require.InDelta(w.T, tt.names, got["names_held"+users], 0, "also while the next one is under way")
					idle, told := got["names_waiting"+users]
					require.True(w.T, told, "nobody waits for them")
					require.Zero(w.T, idle)
				}
				require.Equal(w.T, tt.whole, got["exporter_walk_age_seconds"] < every.Seconds())
			})
		})
	}
}

func TestClassesStayWhatTheyAre(t *testing.T) {
	t.Parallel()
	c := newClasses(waysOf["name"], 2)
	names := func() (all []string) {
		for _, name := range []string{"a", "b", "c", "other", "a", "d"} {
			all = append(all, c.class(keyspace.Sem, name).name)
		}
		return all
	}
	want := []string{"a", "b", "other", "other", "a", "other"}
	require.Equal(t, want, names())
	require.Equal(t, want, names())
	require.Equal(t, "other", c.class(keyspace.Lock, "a").name, "all kinds share them")
	require.Equal(t, "a\uFFFDb\n", newClasses(waysOf["name"], 2).class(keyspace.Sem, "a\xff\xfeb\n").name, "what somebody else has stored is no label as it is")
}

func TestWhoWaitsAndIsKnownToBeDeadIsNotCounted(t *testing.T) {
	t.Parallel()
	var f figures
	f.waits(&berth.Name{Waiting: 3, Dead: 2})
	require.Equal(t, 1, f.waiting)
}
