package exporter

import (
	"maps"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/testkit/link"
)

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

func TestAReadingThatIsCutOffDoesNotEndAWalk(t *testing.T) {
	inWorld(t, func(w *world) {
		const few = 300
		w.thinLocks(few)
		w.link.Delay(func() time.Duration { return within * 9 / 100 }) // there and back nearly as long as it may take to answer
		told := w.until(func(told map[string]float64) bool { return told[heldLocks] > 0 })
		require.InDelta(w.T, few, told[heldLocks], 0)
		require.Positive(w.T, told[problem])
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
