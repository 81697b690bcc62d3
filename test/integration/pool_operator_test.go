package integration

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

// Who waits gets what an operator takes from the others, and keeps it: also in a pool whose
// holders are listed in many pages, of which later ones show the new grants.
func TestThoseWhoWaitKeepWhatTheyGetFromAnOperator(t *testing.T) {
	const resources, waiters = 450, 150
	w := sharedPools(t)
	here, there := w.pool(node.Config{}), w.pool(node.Config{})
	w.add(here, numbered(resources)...)
	for range resources {
		w.allocate(here, nil)
	}
	var waits []*allocating
	for range waiters {
		waits = append(waits, w.allocateLater(there, nil))
	}
	w.awaitInLine(proxies, waiters, func() bool { return false })
	ended, err := here.node.Operator().Release(w.Within(patience), berth.Target{Kind: keyspace.Pool, Name: proxies})
	require.NoError(t, err)
	require.Equal(t, resources, ended)
	var got []*allocation
	for _, wait := range waits {
		got = append(got, wait.Wait(w))
	}
	for _, a := range got {
		require.NoError(t, a.Renew(w.Within(patience)))
	}
	require.Eventually(t, func() bool { return w.inspected(here).Leased == waiters }, patience, 10*time.Millisecond)
	w.giveBack(got...)
}
