package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/observe"
)

// lottery is a server of which nobody knows what it answers, and when.
type lottery struct {
	fake
	mu   sync.Mutex
	draw *rand.Rand // guarded by mu
}

// one is a number from 0 to n-1.
func (l *lottery) one(n int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.draw.IntN(n)
}

// slow lets time pass: mostly little, at times more than an attempt may take.
func (l *lottery) slow() {
	d := time.Duration(l.one(20)) * time.Millisecond
	if l.one(8) == 0 {
		d = time.Duration(l.one(3000)) * time.Millisecond
	}
	time.Sleep(d)
}

func (l *lottery) Acquire(_ context.Context, c *engine.Claim) (engine.Answer, error) {
	l.slow()
	switch l.one(12) {
	case 0:
		return engine.Answer{}, unanswered()
	case 1:
		return engine.Answer{}, errors.New("NOPERM")
	case 2:
		return engine.Answer{Refused: &berth.AcquireError{Reason: berth.ReasonDeadlock, Cause: berth.ErrDeadlock}}, nil
	case 3:
		return engine.Answer{Granted: true, Confirmed: l.one(2) == 0, Ticket: 1, Fence: 1, Left: wait, NextDeadline: nothingDue}, nil
	}
	if !c.MayWait {
		return engine.Answer{Refused: &berth.AcquireError{Reason: berth.ReasonFull}}, nil
	}
	return isQueued, nil
}

func (l *lottery) Beat(_ context.Context, _ string, _ engine.Mode, claims []*engine.Claim) (engine.Round, error) {
	l.slow()
	if l.one(8) == 0 {
		return engine.Round{}, unanswered()
	}
	return l.round(claims), nil
}

func (l *lottery) round(claims []*engine.Claim) engine.Round {
	round := engine.Round{NextDeadline: nothingDue}
	for range claims {
		words := []engine.Word{
			engine.WordWaiting, engine.WordWaiting, engine.WordWaiting, engine.WordHeld, engine.WordUnknown, engine.WordTooHeavy, engine.WordReleased,
		}
		round.Status = append(round.Status, engine.Status{Word: words[l.one(len(words))], Left: wait, Fence: 1})
	}
	return round
}

func (l *lottery) Restore(_ context.Context, _ string, claims []*engine.Claim) (engine.Round, error) {
	l.slow()
	if l.one(4) == 0 {
		return engine.Round{}, unanswered()
	}
	return l.round(claims), nil
}

func (l *lottery) Requeue(context.Context, *engine.Claim) (engine.Answer, bool, error) {
	l.slow()
	return engine.Answer{Ticket: 2, Place: "254 2", Left: wait, NextDeadline: nothingDue}, l.one(2) == 0, nil
}

func (l *lottery) Release(ctx context.Context, c *engine.Claim, stays time.Duration) (engine.Parting, error) {
	l.slow()
	return l.fake.Release(ctx, c, stays)
}

// who has one caller ask, who may leave.
func (l *lottery) who(e *engine.Engine) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if l.one(3) == 0 {
		leaves := time.AfterFunc(time.Duration(l.one(200))*time.Millisecond, cancel)
		defer leaves.Stop()
	}
	c := &engine.Claim{
		ID: e.ClaimID(), Name: fmt.Sprint(l.one(3)), MayWait: l.one(5) > 0, Attempts: time.Duration(l.one(2)*l.one(4000)) * time.Millisecond,
		RequeueEvery: time.Duration(l.one(2)*(1+l.one(2000))) * time.Millisecond,
		Record:       engine.Record{Weight: 1, Wait: wait, Lease: wait, NoRenew: l.one(4) == 0},
	}
	if h, err := e.Acquire(ctx, c, time.Duration(l.one(2)*l.one(5000))*time.Millisecond); err == nil {
		time.Sleep(time.Duration(l.one(100)) * time.Millisecond)
		_ = h.Release(context.Background())
	}
}

// Whatever becomes of the claims that wait or hold, an observer can count them: of those that wait
// it has at no moment more ends than beginnings, and of both at last as many.
func TestWhoWaitsCanBeCounted(t *testing.T) {
	t.Parallel()
	var counted atomic.Int64
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			l := &lottery{draw: rand.New(rand.NewPCG(seed, 0))}
			l.fence = 1
			redis := connected(t)
			var mu sync.Mutex
			waiters, problems := testkit.Waiters{}, []error(nil)
			e, _ := begin(t, l, func(cfg *engine.Config) {
				cfg.Redis, cfg.CallTimeout, cfg.CleanupTimeout = unheard{redis}, time.Second, cleanup
				cfg.Retry = berth.Retry{Attempts: 3}
				cfg.Observe = func(ev observe.Event) {
					if ev.Kind == observe.Queued {
						counted.Add(1)
						l.slow() // so that what ends the claim comes meanwhile
					}
					mu.Lock()
					defer mu.Unlock()
					if err := waiters.Take(ev); err != nil {
						problems = append(problems, err)
					}
				}
			})
			var callers sync.WaitGroup
			for range 40 {
				callers.Go(func() { l.who(e) })
			}
			time.Sleep(time.Duration(l.one(8000)) * time.Millisecond)
			if l.one(2) == 0 {
				e.Abandon()
			}
			_ = e.Close(context.Background())
			callers.Wait()
			mu.Lock()
			defer mu.Unlock()
			require.Empty(t, problems, "seed %d", seed)
			require.Zero(t, waiters.Waiting(), "seed %d", seed)
			require.Zero(t, waiters.Held(), "seed %d", seed)
		})
	}
	require.Greater(t, counted.Load(), int64(500))
}
