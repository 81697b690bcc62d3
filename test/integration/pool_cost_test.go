package integration

import (
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/test/harness"
)

func TestManyCancelledAllocationsLeaveNothing(t *testing.T) {
	const cancels, resources = 500, 3
	w := sharedPools(t)
	// A ghost would live for the whole lease, and no call is so slow that it
	// counts as unanswered.
	cfg := node.Config{Lease: time.Hour, CallTimeout: patience, CleanupTimeout: patience, Retry: heard}
	w.add(w.pool(cfg), numbered(resources)...)
	s := w.storm(proxies, resources)
	proxy := harness.Proxy(t, w.server)
	proxy.AddLatency(time.Millisecond)
	cfg.Observer = s.failures()
	for _, pipelines := range []int{1, 3, 5} {
		edit := heardOn(pipelines)
		for _, redis := range []rueidis.Client{w.server.Client(t, edit), proxy.Client(t, edit)} {
			s.ways = append(s.ways, way{forResource(w.proxies(w.nodeOn(redis, cfg), poolConfig{})), redis})
		}
	}
	s.rage(30, cancels)
	s.settled()
	require.Zero(t, s.failed.Load())
	w.allFree(w.pool(cfg), resources) // without a tombstone: every call was answered
}
