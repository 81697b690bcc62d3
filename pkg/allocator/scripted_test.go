package allocator_test

import (
	"strconv"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// What is here does as other processes do that a test does not start.

// wanting is the text of what a claim wants: the least recently used one, for itself.
const wanting = "o 0 - 0 0:"

// record is what a node asks for, unless change says otherwise.
func record(node string, change ...func(*engine.Record)) engine.Record {
	r := engine.Record{Weight: 1, Wait: lease, Lease: lease, Phase: 'w', Node: node, Extra: wanting}
	for _, f := range change {
		f(&r)
	}
	return r
}

// acquireScript sends pool_acquire as another node would that waits, and returns its
// reply.
func (w *world) acquireScript(node, claim string, change ...func(*engine.Record)) scriptkit.Reply {
	w.T.Helper()
	r := record(node, change...)
	return w.Acquires("pool", node, claim, &r, "1", "-", "", "")
}

// releaseScript sends pool_release as another node would.
func (w *world) releaseScript(node, claim string) scriptkit.Reply {
	w.T.Helper()
	r := w.Releases("pool", node, claim, 0)
	synctest.Wait()
	return r
}

// occupy takes a resource for an hour without a process; its claim is node.1.
func (w *world) occupy(node string) {
	w.T.Helper()
	reply := w.acquireScript(node, node+".1", func(r *engine.Record) { r.Lease, r.Wait = time.Hour, time.Hour })
	require.Contains(w.T, []string{"granted", scriptkit.Plain}, reply.Status())
}

// vacate gives that back.
func (w *world) vacate(node string) {
	w.T.Helper()
	reply := w.releaseScript(node, node+".1")
	require.Contains(w.T, []string{"released", scriptkit.Plain}, reply.Status())
}

func millis(n int64) string { return strconv.FormatInt(n, 10) }
