package semaphore_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/semaphore"
)

const readonly = "READONLY You can't write against a read only replica."

// demote has the server refuse every script of the node, as a replica does.
func (n *node) demote() {
	n.OnCommand(func(c link.Command) link.Fate {
		if strings.Contains(c.Name, "_") { // a script
			return link.Refuse(readonly)
		}
		return link.Pass
	})
}

// A claim that gets nowhere because of the server says so after a few seconds and
// then once a minute, with what the server said, since when and how often; and it
// goes on.
func TestAServerThatRefusesIsToldOfAgainAndAgain(t *testing.T) {
	for name, claim := range map[string]struct {
		begin func(w *world, n *node) *semaphore.Permit // before the server refuses
		then  func(w *world, n *node) (mended func())
	}{
		"asks": {
			func(*world, *node) *semaphore.Permit { return nil },
			func(w *world, n *node) func() {
				q := n.queue(1, nil)
				return func() {
					require.True(w.T, q.Pending(), "waiting goes on")
					n.OnCommand(nil)
					w.Advance(2 * time.Second)
					require.False(w.T, q.Pending())
					require.NoError(w.T, q.Err)
				}
			},
		},
		"waits": {
			func(w *world, _ *node) *semaphore.Permit {
				return w.node().take(1, &semaphore.AcquireOptions{Lease: time.Hour})
			},
			func(w *world, n *node) func() {
				n.OnCommand(nil)
				q := n.queue(1, nil)
				n.demote()
				return func() {
					require.True(w.T, q.Pending(), "waiting goes on")
					n.OnCommand(nil)
					w.Advance(2 * time.Second)
					require.True(w.T, q.Pending())
					require.Equal(w.T, 1, w.stats().Waiting, "it is back in line")
				}
			},
		},
		"holds": {
			func(_ *world, n *node) *semaphore.Permit {
				return n.take(1, &semaphore.AcquireOptions{Lease: berth.Forever})
			},
			func(*world, *node) func() { return func() {} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.node()
				n.connect()
				permit := claim.begin(w, n)
				n.demote()
				began := w.Now()
				mended := claim.then(w, n)
				w.Advance(2 * time.Second)
				require.Empty(t, n.Told(observe.Unavailable), "not at once: a failover may take as long")
				w.Until(began + 2*time.Minute)
				told := n.Told(observe.Unavailable)
				require.Len(t, told, 2)
				for i, e := range told {
					require.Equal(t, name, e.Detail)
					require.ErrorContains(t, e.Err, readonly)
					require.ErrorIs(t, e.Err, berth.ErrUnavailable)
					since := e.At.Sub(w.Began) - e.Silent - began
					require.LessOrEqual(t, since, lease/3, "the first refused call")
					require.GreaterOrEqual(t, e.Silent, lease/6)
					require.LessOrEqual(t, e.Silent, 5*time.Second+time.Duration(i)*(time.Minute+2*time.Second))
					if i == 0 {
						require.Greater(t, e.Count, 1, "how often")
						continue
					}
					require.Greater(t, e.Count, told[i-1].Count)
					require.GreaterOrEqual(t, e.Silent-told[i-1].Silent, time.Minute)
				}
				if permit != nil && permit.Name() == gpu && name == "holds" {
					require.Equal(t, permit.Fence(), told[0].Fence)
					require.Equal(t, berth.Forever, told[0].Left)
				} else {
					require.Positive(t, told[0].Waited)
				}
				mended()
				n.OnCommand(nil)
				w.Advance(90 * time.Second)
				require.Len(t, n.Told(observe.Unavailable), 2, "the server answers again")
			})
		})
	}
}

// Whoever holds hears of it before the lease has run out.
func TestAHoldThatIsNotRenewedSaysSoBeforeItIsLost(t *testing.T) {
	for name, silence := range map[string]func(n *node){
		"refused":      (*node).demote,
		"not answered": (*node).Stall,
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.node()
				n.connect()
				p := n.take(1, nil)
				silence(n)
				<-p.Done()
				n.Flow()
				told := n.Told(observe.Unavailable)
				require.NotEmpty(t, told)
				require.Equal(t, "holds", told[0].Detail)
				require.Greater(t, told[0].Left, lease/10)
				require.ErrorIs(t, told[0].Err, berth.ErrUnavailable)
				require.NotErrorIs(t, told[0].Err, context.DeadlineExceeded, "nobody's context has ended")
				require.NotContains(t, told[0].Err.Error(), "context")
			})
		})
	}
}

// One call without an answer, as a lost packet makes it, is not worth a warning.
func TestOneCallThatIsNotAnsweredIsNotToldOf(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		n.take(1, nil)
		q := n.queue(1, nil)
		for range 10 {
			n.Once("semaphore_renew", link.LoseReply)
			w.Advance(lease)
		}
		require.True(t, q.Pending())
		require.Empty(t, n.Told(observe.Unavailable))
	})
}

// A wait that ends while the server is silent for longer than the wait lease has
// failed: nobody knows whether anybody is in the way.
func TestAWaitWhoseLastAnswerIsOldHasFailed(t *testing.T) {
	for name, test := range map[string]struct {
		end    time.Duration // after the last answer
		reason berth.Reason
	}{
		"as old as the wait lease": {lease, berth.ReasonTimedOut},
		"older":                    {lease + ms, berth.ReasonFailed},
	} {
		for by, wait := range map[string]func(w *world, n *node, d time.Duration) *wait{
			"MaxWait": func(_ *world, n *node, d time.Duration) *wait {
				return n.queue(1, &semaphore.AcquireOptions{MaxWait: d})
			},
			"deadline": func(w *world, n *node, d time.Duration) *wait {
				ctx, cancel := context.WithTimeout(context.Background(), d)
				w.T.Cleanup(cancel)
				return n.queueOn(ctx, n.gpu(1), nil)
			},
		} {
			for cut, silence := range map[string]func(n *node){"refused": (*node).demote, "stalled": (*node).Stall} {
				t.Run(name+" by "+by+" "+cut, func(t *testing.T) {
					inWorld(t, func(t *testing.T, w *world) {
						n := w.node()
						n.connect()
						w.node().take(1, &semaphore.AcquireOptions{Lease: berth.Forever})
						start := w.Now()
						q := wait(w, n, test.end)
						silence(n)
						refusal := q.Refused(start+test.end, test.reason)
						if test.reason == berth.ReasonFailed {
							require.ErrorIs(t, refusal, berth.ErrUnavailable)
							require.NotErrorIs(t, refusal, berth.ErrBusy)
						} else {
							require.ErrorIs(t, refusal, berth.ErrBusy)
							require.NotErrorIs(t, refusal, berth.ErrUnavailable)
						}
						n.Flow()
						n.OnCommand(nil)
					})
				})
			}
		}
	}
}

// A server that takes what is sent and never answers is told of as well.
func TestAServerThatIsMuteIsToldOf(t *testing.T) {
	for name, begin := range map[string]func(w *world, n *node){
		"asks": func(_ *world, n *node) {
			n.Stall()
			n.queue(1, nil)
		},
		"waits": func(w *world, n *node) {
			w.node().take(1, &semaphore.AcquireOptions{Lease: time.Hour})
			n.queue(1, nil)
			n.Stall()
		},
		"holds": func(_ *world, n *node) {
			n.take(1, &semaphore.AcquireOptions{Lease: berth.Forever})
			n.Stall()
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.node()
				n.connect()
				begin(w, n)
				w.Advance(15 * time.Second)
				require.Len(t, n.Told(observe.Unavailable), 1)
				require.Equal(t, name, n.Told(observe.Unavailable)[0].Detail)
				require.ErrorIs(t, n.Told(observe.Unavailable)[0].Err, berth.ErrUnavailable)
				w.Advance(time.Minute + 15*time.Second)
				require.Len(t, n.Told(observe.Unavailable), 2, "and once a minute")
				n.Flow()
				w.Advance(time.Minute)
			})
		})
	}
}
