package semaphore_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/semaphore"
)

func TestWhatADetachLeavesOfEachKindOfPermit(t *testing.T) {
	for name, c := range map[string]struct {
		opts semaphore.AcquireOptions
		left time.Duration // on the server, right after a Detach at 1 s
		lost bool          // its first answer
	}{
		"renewing":     {opts: semaphore.AcquireOptions{}, left: lease},
		"repeated":     {opts: semaphore.AcquireOptions{}, left: lease, lost: true},
		"fixed":        {opts: semaphore.AcquireOptions{NoRenew: true}, left: lease - time.Second},
		"maximum hold": {opts: semaphore.AcquireOptions{MaxHold: 3 * time.Second}, left: 2 * time.Second},
		"long":         {opts: semaphore.AcquireOptions{Lease: time.Minute}, left: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				ctx := context.Background()
				n := w.node()
				p := n.take(1, &c.opts)
				w.Until(time.Second)
				if c.lost {
					n.Once("semaphore_renew", link.LoseReply)
				}
				token, err := p.Detach(ctx)
				require.NoError(t, err)
				require.Equal(t, berth.Token{
					Kind: "sem", Namespace: "berth", Name: gpu, Claim: p.ID(), Node: n.ID(), Fence: p.Fence(),
				}, token)
				left, ok := w.LeftOf(p.ID())
				require.True(t, ok)
				require.Equal(t, time.Second+c.left, w.Now()+left, "it is counted once")
				n.Reset()
				require.NoError(t, p.Release(ctx))
				require.Empty(t, n.Counts(), "a Release does nothing any more")
				require.ErrorIs(t, p.Err(), berth.ErrReleased)
				q := n.queue(1, nil)
				q.GrantedBy(time.Second + c.left)
			})
		})
	}
}

func TestAResumedPermitIsOfTheKindThatItWas(t *testing.T) {
	for name, c := range map[string]struct {
		opts   semaphore.AcquireOptions
		renews bool
		ends   time.Duration // 0 = never
	}{
		"renewing":     {semaphore.AcquireOptions{}, true, 0},
		"fixed":        {semaphore.AcquireOptions{NoRenew: true, Lease: 20 * time.Second}, false, 20*time.Second - 202*ms},
		"maximum hold": {semaphore.AcquireOptions{MaxHold: 30 * time.Second}, true, 30*time.Second - margin},
		"without end":  {semaphore.AcquireOptions{Lease: berth.Forever}, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				ctx := context.Background()
				a, b := w.node(), w.node()
				w.Advance(0)
				p := a.take(1, &c.opts)
				w.Until(time.Second)
				token, err := p.Detach(ctx)
				require.NoError(t, err)
				w.Until(4 * time.Second)
				q, err := b.Resume(ctx, token)
				require.NoError(t, err)
				require.Equal(t, p.Fence(), q.Fence())
				require.Equal(t, !c.renews, w.Holders()[0].NoRenew)
				ended := w.Watch(q)
				synctest.Wait()
				if c.ends == 0 {
					w.Until(2 * time.Minute)
					require.NoError(t, q.Err())
					return
				}
				e := <-ended
				require.ErrorIs(t, e.Cause, berth.ErrExpired)
				testkit.RequireWithin(t, c.ends, e.At)
			})
		})
	}
}

func TestForceOfAClaimOfAWaiterRefusesItAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, operator := w.node(), w.node()
		p := a.take(2, nil)
		heavy := a.queue(2, &semaphore.AcquireOptions{Weight: 2})
		light := a.queue(2, nil)
		w.Until(500 * ms)
		require.NoError(t, operator.end(w.Waiters()[0].ID))
		require.ErrorIs(t, heavy.Refused(500*ms, berth.ReasonGone), berth.ErrNotAcquired)
		light.Granted(500 * ms)
		require.NoError(t, p.Err())
	})
}
