package torture

import (
	"path/filepath"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/test/torture/history"
	"github.com/berth-go/berth/test/torture/job"
)

// endless are held without an end, and that only during the faults of this file.
var endless = []string{"endless 1", "endless 2", "endless 3"}

// losesReleases is a fault after which the server has holds again that were given back, and that nothing
// ends but their node. What remembers returns what makes the server forget, and that what heals.
func losesReleases(name string, remember func(*round, *history.Fault) (lose func() (heal func()))) *fault {
	return &fault{name: name, alone: true, begin: func(r *round, record *history.Fault) func() {
		record.Amnesia = true
		r.command(job.Endless)
		r.givesBack(history.Monotonic())
		lose := remember(r, record)
		r.givesBack(history.Monotonic())
		heal := lose()
		r.command(job.Short)
		record.LostNow()
		return func() {
			heal()
			record.Shown = r.standing()
		}
	}}
}

// givesBack returns when somebody has given back what he had without an end, since then, or when that takes too long: other
// faults have their aftermath.
func (r *round) givesBack(since int64) {
	r.Helper()
	gave := func(e history.Event) bool {
		return e.At > since && e.Kind == history.OK && e.Do == history.Release && slices.Contains(endless, e.Name)
	}
	for end := time.Now().Add(r.limit()); time.Now().Before(end); {
		r.wait(500*time.Millisecond, time.Second)
		for _, w := range r.workers {
			events, err := history.Read(filepath.Join(r.dir, w.job.Process+".jsonl"))
			require.NoError(r, err)
			if slices.ContainsFunc(events, gave) {
				return
			}
		}
	}
}

var restarting = losesReleases("restart that loses releases of holds without end", snapshot)

// standing returns the claims that hold without an end, as soon as there are none, or when the limit of a drain has
// passed.
func (r *round) standing() (claims []string) {
	r.Helper()
	reader := testkit.Patient{T: r.T}.Reader(r.world.client, r.ns)
	for end := time.Now().Add(r.limit()); ; <-time.After(50 * time.Millisecond) {
		claims = nil
		for _, name := range endless {
			for _, kind := range []keyspace.Kind{keyspace.Lock, keyspace.Sem} {
				for _, h := range reader.Holders(kind, name) {
					claims = append(claims, h.ID)
				}
			}
		}
		if len(claims) == 0 || time.Now().After(end) {
			return claims
		}
	}
}

// limit is how long what must come in the end may take.
func (r *round) limit() time.Duration {
	return time.Duration(r.workers[0].job.DrainLimit) * time.Millisecond
}
