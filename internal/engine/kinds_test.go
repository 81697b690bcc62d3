package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// shards has the pools on a server that answers nothing, and all else on one that answers after a while.
type shards struct {
	mute
	way time.Duration

	mu     sync.Mutex
	asked  int           // guarded by mu: acquires of pools that were sent
	back   int           // guarded by mu: releases that were answered
	latest time.Duration // guarded by mu: when the last one was
}

// answers returns when a call of the claim was answered, or counts as unanswered.
func (s *shards) answers(ctx context.Context, c *engine.Claim) error {
	if c.Kind != keyspace.Pool {
		<-time.After(s.way)
		return nil
	}
	select {
	case <-time.After(within):
	case <-ctx.Done():
	}
	return &scriptkit.Error{MaybeRan: true, Repeatable: true, Unavailable: true, Err: errors.New("no answer")}
}

func (s *shards) Acquire(ctx context.Context, c *engine.Claim) (engine.Answer, error) {
	if c.Name == "granted" {
		return s.fake.Acquire(ctx, c)
	}
	s.mu.Lock()
	if c.Kind == keyspace.Pool {
		s.asked++
	}
	s.mu.Unlock()
	if err := s.answers(ctx, c); err != nil {
		return engine.Answer{}, err
	}
	return s.fake.Acquire(ctx, c)
}

func (s *shards) Release(ctx context.Context, c *engine.Claim, stays time.Duration) (engine.Parting, error) {
	if err := s.answers(ctx, c); err != nil {
		return engine.Parting{}, err
	}
	s.mu.Lock()
	s.back, s.latest = s.back+1, s.clock.Now()
	s.mu.Unlock()
	return s.fake.Release(ctx, c, stays)
}

// of is a claim of a kind.
func of(e *engine.Engine, kind keyspace.Kind, name string) *engine.Claim {
	return &engine.Claim{
		ID: e.ClaimID(), Kind: kind, Name: name, MayWait: true, Record: engine.Record{Weight: 1, Wait: wait, Lease: wait},
	}
}

// All kinds of a node share its gates. A storm of one kind, whose asks take all the room and are never answered, must not have the
// others stand in line behind it: they would wait for as long as its calls are repeated.
func TestAStormOfOneKindHoldsUpNoOther(t *testing.T) {
	s := &shards{way: time.Millisecond}
	onEngine(t, &s.mute, engine.Config{Scripts: s, CallTimeout: callTimeout}, func(t *testing.T, e *engine.Engine) {
		ctx, cancel := context.WithCancel(context.Background())
		var storm sync.WaitGroup
		for i := range 3000 {
			storm.Go(func() { _, _ = e.Acquire(ctx, of(e, keyspace.Pool, fmt.Sprint("p", i)), 0) })
		}
		synctest.Wait()
		s.mu.Lock()
		asked := s.asked
		s.mu.Unlock()
		require.Equal(t, mostAsking, asked, "the window is full, and the others wait for room")
		for _, kind := range []keyspace.Kind{keyspace.Lock, keyspace.Sem} {
			for range 3 {
				begun := e.Now()
				h, err := e.Acquire(context.Background(), of(e, kind, "x"), 0)
				require.NoError(t, err)
				require.Equal(t, s.way, e.Now()-begun)
				require.NoError(t, h.Release(context.Background()))
			}
		}
		cancel()
		storm.Wait()
	})
}

// A Close gives all kinds back side by side: what is answered is back as soon as without the others, though these fill all the places
// that there are, and they are waited for once.
func TestACloseBesideAKindThatIsAway(t *testing.T) {
	const many = 2000
	s := &shards{way: time.Millisecond}
	onEngine(t, &s.mute, engine.Config{Scripts: s, CallTimeout: callTimeout}, func(t *testing.T, e *engine.Engine) {
		for _, kind := range []keyspace.Kind{keyspace.Pool, keyspace.Lock, keyspace.Sem} {
			for range many {
				c := of(e, kind, "granted")
				_, err := e.Acquire(context.Background(), c, 0)
				require.NoError(t, err)
			}
		}
		begun := e.Now()
		err := e.Close(context.Background())
		require.ErrorIs(t, err, berth.ErrUnavailable)
		require.Equal(t, 2*many, s.back)
		require.LessOrEqual(t, s.latest-begun, 500*time.Millisecond)
		require.ErrorContains(t, err, fmt.Sprintf("%d more holds", many-10))
		require.Len(t, s.failures(), many, "of the pools alone")
		require.LessOrEqual(t, e.Now()-begun, within+callTimeout+time.Second)
	})
}
