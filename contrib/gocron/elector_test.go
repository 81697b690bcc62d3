package berthgocron_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	berthgocron "github.com/berth-go/berth/contrib/gocron"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/leader"
)

// candidate is an Elector of a process of its own that stands for election.
type candidate struct {
	*berthgocron.Elector
	leave context.CancelFunc
	left  <-chan error
}

// candidate stands for election, and lets everything settle.
func (w *world) candidate() *candidate {
	w.t.Helper()
	e := berthgocron.NewElector(w.node(), "scheduler", &leader.Config{KeepWhenWanted: true})
	ctx, cancel := context.WithCancel(context.Background())
	left := make(chan error, 1)
	go func() { left <- e.Run(ctx) }()
	w.t.Cleanup(cancel)
	synctest.Wait()
	return &candidate{e, cancel, left}
}

func (c *candidate) leads() bool { return c.IsLeader(context.Background()) == nil }

func TestTheLeaderRunsAllJobs(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var ran []string
		all := map[string]*candidate{"first": w.candidate(), "second": w.candidate()}
		for name, c := range all {
			w.job(w.replica(0, gocron.WithDistributedElector(c)), "* * * * *", func() {
				w.mu.Lock()
				defer w.mu.Unlock()
				ran = append(ran, name)
			})
		}
		time.Sleep(2*time.Minute + time.Second)
		all["first"].leave()
		require.ErrorIs(t, <-all["first"].left, context.Canceled)
		time.Sleep(2*time.Minute + time.Second)
		w.mu.Lock()
		defer w.mu.Unlock()
		require.Equal(t, []string{"first", "first", "second", "second"}, ran)
	})
}

func TestWhoHasLostLeadershipKnowsItBeforeAnotherLeads(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		first, second := w.candidate(), w.candidate()
		require.True(t, first.leads())
		require.ErrorIs(t, second.IsLeader(t.Context()), berthgocron.ErrNotLeader)

		w.server.Hang(time.Minute)
		begun := time.Now()
		require.True(t, first.leads(), "it leads as long as its lease lasts")
		for first.leads() {
			require.False(t, second.leads())
			time.Sleep(time.Millisecond)
		}
		require.Less(t, time.Since(begun), 10*time.Second)
		time.Sleep(2 * time.Minute)
		require.NotEqual(t, first.leads(), second.leads())
	})
}

func TestLeadershipThatIsWantedBackIsHandedOn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		first, second := w.candidate(), w.candidate()
		_, err := w.node().Operator().Want(t.Context(), berth.Target{Kind: keyspace.Lock, Name: "scheduler"})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		require.False(t, first.leads())
		require.True(t, second.leads())
	})
}

func TestNobodyStandsWithBadArguments(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		for field, e := range map[string]*berthgocron.Elector{
			"node":     berthgocron.NewElector(nil, "scheduler", nil),
			"name":     berthgocron.NewElector(w.node(), "{}", nil),
			"Priority": berthgocron.NewElector(n, "scheduler", &leader.Config{Priority: 1000}),
		} {
			var refused *berth.ConfigError
			require.ErrorAs(t, e.Run(t.Context()), &refused)
			require.Equal(t, field, refused.Field)
		}
		_, err := n.Check(t.Context())
		require.ErrorContains(t, err, "Priority")
	})
}
