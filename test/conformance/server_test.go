package conformance

import (
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
)

// The names that limits speak of.
const (
	cutTest     = "server/waits and holds outlive their connections"
	versionTest = "server/check tells the version"
)

func serverTests() []test {
	return []test{
		{name: "server/forgotten scripts go unnoticed", alone: true, run: scriptFlush},
		{name: cutTest, alone: true, run: cut},
		{name: "server/check passes", run: check},
		{name: versionTest, run: version},
	}
}

// three are one of each kind, taken by the first process, and waited for by the second. Then comes after each call.
func (w *world) three(then func()) (held []berth.Hold, line []*testkit.Call[berth.Hold]) {
	w.Helper()
	for _, k := range kinds {
		two := k.open(w, thing, 1)
		held = append(held, must(w, two[0].acquire(wish{})))
		then()
		line = append(line, queue(w, two[1].acquire(wish{}), w.waiting(k.of, thing), 1))
		then()
	}
	return held, line
}

func scriptFlush(w *world) {
	forget := func() { w.onNodes("SCRIPT", "FLUSH") }
	forget()
	held, line := w.three(forget)
	for _, h := range held {
		require.NoError(w, h.Renew(w.Within(patience)))
	}
	forget()
	release(w, held...)
	for _, q := range line {
		h := q.Wait(w)
		forget()
		release(w, h)
	}
}

func cut(w *world) {
	held, line := w.three(func() {})
	w.onNodes("CLIENT", "KILL", "TYPE", "pubsub")
	w.onNodes("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no")
	for i, q := range line {
		require.NoError(w, held[i].Renew(w.Within(patience)))
		w.onNodes("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no")
		release(w, held[i])
		release(w, q.Wait(w))
	}
}

// report is what Check of a node of all three has found out.
func (w *world) report() berth.Report {
	w.Helper()
	for _, k := range kinds {
		k.open(w, thing, 1)
	}
	return must(w, w.node(0).Check)
}

func check(w *world) {
	report := w.report()
	require.Positive(w, report.Latency)
	if report.Version == "" {
		require.NotEmpty(w, report.Warnings, "what may not be asked is a warning")
	}
}

func version(w *world) {
	server, mode := "redis", "standalone"
	switch w.deployment.Name {
	case "valkey":
		server = "valkey"
	case "cluster":
		mode = "cluster"
	}
	report := w.report()
	require.Equal(w, server, report.Server)
	require.Equal(w, mode, report.Mode)
	require.NotEmpty(w, report.Version)
	require.Equal(w, "noeviction", report.Eviction)
}
