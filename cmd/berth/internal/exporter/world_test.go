package exporter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

const (
	every  = 10 * time.Second
	within = 5 * time.Second
)

// world is a server in virtual time, and an exporter that reads it on a link of its own.
type world struct {
	*testkit.World
	*exporter
	source *source
	link   *testkit.Process
	n      *node.Node // that holds and waits
	said   []string
}

func inWorld(t *testing.T, test func(w *world)) {
	t.Helper()
	testkit.In(t, "gpu", "berth:sem:{gpu}:state", "berth:sem:{gpu}:line", func(t *testing.T, base *testkit.World) {
		w := &world{World: base, link: base.Process()}
		source, err := newSource(w.link.Redis, "berth", within, newClasses(waysOf["collapse"], 100))
		require.NoError(t, err)
		w.source = source
		t.Cleanup(source.close)
		w.exporter = newExporter(every, within, source.read, func(problem string) { w.said = append(w.said, problem) })
		t.Cleanup(w.exporter.close)
		users := base.Process()
		w.n, err = node.New(users.Redis, node.Config{Lease: testkit.Lease})
		require.NoError(t, err)
		users.Closes(w.n.Close)
		test(w)
	})
}

// take takes a permit that is free.
func (w *world) take(name string, capacity int) {
	w.T.Helper()
	_, err := semaphore.New(w.n, name, capacity, semaphore.Config{}).TryAcquire(context.Background(), nil)
	require.NoError(w.T, err)
}

// queue waits for one until the node is closed.
func (w *world) queue(name string, capacity int) {
	w.T.Helper()
	go func() {
		_, _ = semaphore.New(w.n, name, capacity, semaphore.Config{}).Acquire(context.Background(), nil)
	}()
}

// scrape is what the exporter tells, by the text of each series.
func scrape(t *testing.T, e *exporter) map[string]float64 {
	t.Helper()
	answer := httptest.NewRecorder()
	e.handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	require.Equal(t, http.StatusOK, answer.Code, answer.Body)
	told := map[string]float64{}
	for line := range strings.Lines(answer.Body.String()) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.LastIndex(line, " ")
		v, err := strconv.ParseFloat(line[at+1:], 64)
		require.NoError(t, err)
		series, known := strings.CutPrefix(line[:at], "berth_")
		require.True(t, known, line)
		told[series] = v
	}
	return told
}

func (w *world) scrape() map[string]float64 {
	w.T.Helper()
	return scrape(w.T, w.exporter)
}

// anew lets the last reading become too old, and scrapes.
func (w *world) anew() map[string]float64 {
	w.T.Helper()
	w.Advance(every)
	return w.scrape()
}

// about are the series that begin so.
func about(told map[string]float64, begins string) map[string]float64 {
	found := maps.Clone(told)
	maps.DeleteFunc(found, func(series string, _ float64) bool { return !strings.HasPrefix(series, begins) })
	return found
}

// names are the names of the metrics that are told.
func metricsOf(told map[string]float64) []string {
	var all []string
	for series := range told {
		name, _, _ := strings.Cut(series, "{")
		all = append(all, name)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// alive is a reading that a server has answered.
func alive() *reading { return &reading{began: time.Now(), servers: []server{{address: "one"}}} }

func TestWhoAsksAtTheSameTimeSharesOneReading(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var read atomic.Int64
		e := newExporter(every, within, func(context.Context) *reading {
			read.Add(1)
			r := alive()
			time.Sleep(time.Second)
			return r
		}, func(string) {})
		defer e.close()
		found := make(chan told, 50)
		for range 50 {
			go func() { found <- e.look() }()
		}
		for range 50 {
			require.True(t, (<-found).up())
		}
		require.EqualValues(t, 1, read.Load())

		time.Sleep(every - time.Second - time.Millisecond)
		require.True(t, e.look().up())
		require.EqualValues(t, 1, read.Load(), "it is not too old yet")
		time.Sleep(time.Millisecond)
		e.look()
		require.EqualValues(t, 2, read.Load())
	})
}

// TestWhoHasWaitedForAReadingIsToldIt although somebody else begins the next one before whoever has waited looks.
func TestWhoHasWaitedForAReadingIsToldIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const long = time.Second
		var began int
		var e *exporter
		e = newExporter(long, within, func(context.Context) *reading {
			began++
			r := alive()
			r.failed("names", fmt.Errorf("reading %d", began))
			time.Sleep(long)
			return r
		}, func(string) { e.begin() })
		defer e.close()
		for i := range 3 {
			require.NotNil(t, e.look().reading)
			synctest.Wait()
			require.Equal(t, i+2, began, "the next one has begun")
		}
	})
}

func TestAReadingThatHangsDelaysNobodyForLongAndOldFiguresAreNotTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hangs := make(chan struct{})
		var read int
		e := newExporter(every, within, func(context.Context) *reading {
			if read++; read == 2 {
				<-hangs // heeds no ctx
			}
			return alive()
		}, func(string) {})
		defer e.close()
		require.True(t, e.look().up())
		time.Sleep(every)
		for range 3 {
			began := time.Now()
			require.Nil(t, e.look().reading)
			require.Equal(t, within, time.Since(began))
		}
		require.Equal(t, map[string]float64{"up": 0, `exporter_readings_total{outcome="answered"}`: 1, `exporter_readings_total{outcome="silent"}`: 0}, scrape(t, e))
		close(hangs)
		synctest.Wait()
		require.True(t, e.look().up())
		require.Equal(t, 2, read)
	})
}

func TestWhatWasReadUntilTheTimeWasOverIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newExporter(every, within, func(ctx context.Context) *reading {
			<-ctx.Done()
			time.Sleep(within / 20)
			return alive()
		}, func(string) {})
		defer e.close()
		for range 3 {
			began := time.Now()
			told := e.look()
			require.NotNil(t, told.reading)
			require.True(t, told.up())
			require.Less(t, time.Since(began), within)
			time.Sleep(every)
		}
	})
}

func TestAProblemIsSaidOnceUntilItChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var said []string
		next := []string{"", "a", "a", "b", "", "b"}
		e := newExporter(0, within, func(context.Context) *reading {
			r := alive()
			if next[0] != "" {
				r.failed("names", nil, errors.New(next[0]), errors.New("another"))
			}
			next = next[1:]
			return r
		}, func(problem string) { said = append(said, problem) })
		defer e.close()
		for range 6 {
			e.look()
		}
		require.Equal(t, []string{"names: a (and 1 more)", "names: b (and 1 more)", "names: b (and 1 more)"}, said)
	})
}

// walked is a number of locks that one reading of a server far away does not walk through, and heldLocks what is told of them.
const (
	walked    = 500
	heldLocks = `names_held{name_class="user:*",primitive="lock"}`
	problem   = "exporter_problems"
)

// far has the server be so far away that a reading has room for about 400 locks.
func (w *world) far() { w.link.Delay(func() time.Duration { return within / 40 }) }

// until scrapes until what is told will do.
func (w *world) until(does func(told map[string]float64) bool) map[string]float64 {
	w.T.Helper()
	for range 40 {
		if told := w.anew(); does(told) {
			return told
		}
	}
	require.Fail(w.T, "it is never told")
	return nil
}

// wholly says that a walk is told which has found everything.
func wholly(told map[string]float64) bool { return told[heldLocks] == walked && told[problem] == 0 }

func TestAServerThatStandsStillForAMomentDoesNotEndAWalk(t *testing.T) {
	inWorld(t, func(w *world) {
		w.thinLocks(walked)
		w.far()
		rows := 0
		w.link.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "MGET" && len(c.Args) == 1 {
				if rows++; rows%350 == 0 {
					return link.Slow(within * 3 / 10) // longer than it may take to answer
				}
			}
			return link.Pass
		})
		failed, ended := 0, map[float64]bool{}
		for range 20 {
			told := w.anew()
			require.InDelta(w.T, 1, told["up"], 0)
			if told[problem] > 0 {
				failed++
			}
			if held, known := told[heldLocks]; known {
				require.InDelta(w.T, walked, held, 0)
				ended[w.last.found.names.began.Sub(w.Began).Seconds()] = true
			}
		}
		require.Greater(w.T, failed, 2)
		require.Greater(w.T, len(ended), 2, "walks come to their end")
		w.link.OnCommand(nil)
		w.until(wholly)
	})
}

// servers is a client that knows these servers.
type servers struct {
	rueidis.Client
	nodes map[string]rueidis.Client
}

func (s *servers) Nodes() map[string]rueidis.Client { return maps.Clone(s.nodes) }

// inServers is a world whose exporter knows these servers.
func inServers(t *testing.T, test func(w *world, nodes map[string]rueidis.Client)) {
	t.Helper()
	inWorld(t, func(w *world) {
		nodes := map[string]rueidis.Client{"a": w.link.Redis}
		source, err := newSource(&servers{w.link.Redis, nodes}, "berth", within, newClasses(waysOf["collapse"], 100))
		require.NoError(w.T, err)
		w.T.Cleanup(source.close)
		w.exporter = newExporter(every, within, source.read, func(string) {})
		w.T.Cleanup(w.exporter.close)
		w.thinLocks(walked)
		w.far()
		test(w, nodes)
	})
}

func TestAServerThatIsDeadDoesNotKeepAWalkFromItsEnd(t *testing.T) {
	inServers(t, func(w *world, nodes map[string]rueidis.Client) {
		dead := w.Process()
		nodes["b"] = dead.Redis
		dead.Stall()
		told := func(told map[string]float64) bool { return told[heldLocks] == walked }
		w.until(told)
		for range 8 {
			got := w.anew()
			require.True(w.T, told(got), "what the others have")
			require.Positive(w.T, got[problem], "as long as a walk is told that is without the dead one")
			require.Less(w.T, got["exporter_walk_age_seconds"], 4*every.Seconds(), "no reading asks the dead one again for the same names")
		}
		delete(nodes, "b")
		w.until(wholly)
	})
}

func TestAServerThatRefusesDoesNotKeepAWalkFromItsEnd(t *testing.T) {
	inServers(t, func(w *world, _ map[string]rueidis.Client) {
		w.link.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "MGET" && len(c.Args) == 1 { // as a row is read
				return link.Refuse("NOPERM this user has no permissions")
			}
			return link.Pass
		})
		ended := func(told map[string]float64) bool { _, known := told["exporter_walk_age_seconds"]; return known }
		require.Positive(w.T, w.until(ended)[problem])
		w.link.OnCommand(nil)
		w.until(wholly)
	})
}

func TestAServerThatIsGoneDoesNotKeepAWalkFromItsEnd(t *testing.T) {
	inServers(t, func(w *world, nodes map[string]rueidis.Client) {
		require.NotContains(w.T, w.scrape(), heldLocks, "a walk is under way")
		nodes["b"] = nodes["a"] // as when a Sentinel has another one be the primary; what was found on the other takes longer than a reading
		delete(nodes, "a")
		w.until(wholly)
	})
}
