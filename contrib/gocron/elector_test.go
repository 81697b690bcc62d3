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
	"github.com/berth-go/berth/pkg/leader"
	"github.com/berth-go/berth/pkg/qlock"
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
	leaders, err := leader.New(w.server.Client(), qlock.Config{})
	require.NoError(w.t, err)
	w.t.Cleanup(func() { require.NoError(w.t, leaders.Close(context.Background())) })
	e, err := berthgocron.NewElector(leaders, "scheduler", &leader.Options{KeepWhenWanted: true})
	require.NoError(w.t, err)
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
		locks, err := qlock.New(w.server.Client(), qlock.Config{})
		require.NoError(t, err)
		defer func() { require.NoError(t, locks.Close(context.Background())) }()
		_, err = locks.Operator().Want(t.Context(), berth.Target{Name: "scheduler"})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		require.False(t, first.leads())
		require.True(t, second.leads())
	})
}

func TestNobodyStandsWithBadArguments(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		leaders, err := leader.New(w.server.Client(), qlock.Config{})
		require.NoError(t, err)
		defer func() { require.NoError(t, leaders.Close(context.Background())) }()
		_, err = berthgocron.NewElector(nil, "scheduler", nil)
		require.ErrorIs(t, err, berth.ErrInvalidConfig)
		_, err = berthgocron.NewElector(leaders, "{}", nil)
		require.ErrorIs(t, err, berth.ErrInvalidConfig)
		e, err := berthgocron.NewElector(leaders, "scheduler", &leader.Options{Priority: 1000})
		require.NoError(t, err)
		require.ErrorIs(t, e.Run(t.Context()), berth.ErrInvalidConfig)
	})
}
