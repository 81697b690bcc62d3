package demo

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/embedded"
)

// TestAnActIsPlayedAgain plays one on a server on which it was played before.
func TestAnActIsPlayedAgain(t *testing.T) {
	server, err := embedded.StartListening("127.0.0.1:0")
	require.NoError(t, err)
	defer server.Close()
	var out bytes.Buffer
	for range 2 {
		facts, err := once(context.Background(), withWorkers("good", &out), poolAct, server)
		require.NoError(t, err)
		require.NotEmpty(t, facts)
		for _, f := range facts {
			require.True(t, f.ok, f.text)
		}
	}
}

func TestARoundIsALine(t *testing.T) {
	require.Equal(t, "pool, round 2: all is as promised", verdict("pool", 2, []fact{{true, "x"}}, nil))
	require.Equal(t, "pool, round 2: not as promised: y", verdict("pool", 2, []fact{{true, "x"}, {false, "y"}}, nil))
	require.Equal(t, "pool, round 2: spoilt: worker 3: lost", verdict("pool", 2, nil, errors.New("demo: worker 3: lost")))
}

func TestNothingIsWatchedAtItsEnd(t *testing.T) {
	server, err := embedded.StartListening("127.0.0.1:0")
	require.NoError(t, err)
	defer server.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var out bytes.Buffer
	Watched(ctx, withWorkers("good", &out), server)
	require.Empty(t, strings.TrimSpace(out.String()))
}

func TestASlowerPlan(t *testing.T) {
	slow := semaphorePlan.slower(3)
	require.Equal(t, 3*semaphorePlan.askEvery, slow.askEvery)
	require.Equal(t, 3*semaphorePlan.order(2).Work, slow.order(2).Work)
	require.Equal(t, semaphorePlan.lease, slow.lease)
}
