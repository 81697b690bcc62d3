package berthgocron_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/qlock"
)

// plain is a Locker that only locks: what this package is not.
type plain struct{ locks *qlock.Locks }

func (p plain) Lock(ctx context.Context, name string) (gocron.Lock, error) {
	lock, err := p.locks.TryLock(ctx, name, nil)
	if err != nil {
		return nil, err
	}
	return held{lock}, nil
}

type held struct{ lock *qlock.Lock }

func (h held) Unlock(ctx context.Context) error { return h.lock.Release(ctx) }

func TestALockThatOnlyLocksRunsAShortJobOnTwoReplicas(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var runs atomic.Int32
		for _, ahead := range []time.Duration{0, -2 * time.Second} {
			s := w.replica(ahead, gocron.WithDistributedLocker(plain{qlock.New(w.node(), nil)}))
			_, err := s.NewJob(gocron.CronJob("0 * * * *", false), gocron.NewTask(func() { runs.Add(1) }), gocron.WithName("digest"))
			require.NoError(t, err)
		}
		time.Sleep(3 * time.Hour)
		require.EqualValues(t, 6, runs.Load(), "each hour twice")
	})
}
