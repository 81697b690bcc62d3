package exporter

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/testkit"
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
	link *testkit.Process
	n    *node.Node // that holds and waits
	said []string
}

func inWorld(t *testing.T, test func(w *world)) {
	t.Helper()
	testkit.In(t, "gpu", "berth:sem:{gpu}:state", "berth:sem:{gpu}:line", func(t *testing.T, base *testkit.World) {
		w := &world{World: base, link: base.Process()}
		source, err := newSource(w.link.Redis, "berth", within, newClasses(waysOf["collapse"], 100))
		require.NoError(t, err)
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
	_, err := semaphore.New(w.n, name, capacity, nil).TryAcquire(context.Background(), nil)
	require.NoError(w.T, err)
}

// queue waits for one until the node is closed.
func (w *world) queue(name string, capacity int) {
	w.T.Helper()
	go func() { _, _ = semaphore.New(w.n, name, capacity, nil).Acquire(context.Background(), nil) }()
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
