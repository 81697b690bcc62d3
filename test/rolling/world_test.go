package rolling

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/pkg/semaphore"
)

const (
	lease  = 6 * time.Second // of all clients in a play
	second = time.Second
	name   = "rolled" // what is contended for
)

// stage is a server in virtual time, where processes of two releases meet. It is the
// TestingT of the play: a failure ends the play, and is what perform returns.
type stage struct {
	t       *testing.T
	server  *embedded.Server
	redis   rueidis.Client // looks on
	failure string
	closing []func()
}

// curtain is what ends a play that has failed.
type curtain struct{}

// Errorf notes a failure.
func (s *stage) Errorf(format string, args ...any) { s.failure += fmt.Sprintf(format, args...) }

// FailNow ends the play.
func (s *stage) FailNow() { panic(curtain{}) }

// Helper is for testify.
func (s *stage) Helper() {}

// perform runs a play between processes of two releases, nil for today's, and
// returns how it failed, "" if it did not. What it leaves running fails t.
func perform(t *testing.T, a, b *scriptkit.Library, play func(s *stage, a, b *process)) (failure string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &stage{t: t}
		defer func() { failure = s.failure }()
		defer func() {
			for _, end := range slices.Backward(s.closing) {
				end()
			}
		}()
		var err error
		s.server, err = embedded.Start()
		require.NoError(t, err)
		s.closing = append(s.closing, s.server.Close)
		s.redis, err = s.server.Client(testkit.RarePings)
		require.NoError(t, err)
		s.closing = append(s.closing, s.redis.Close)
		defer func() {
			if p := recover(); p != nil && p != any(curtain{}) {
				panic(p)
			}
		}()
		play(s, s.process(a), s.process(b))
	})
	return failure
}

// process is a process of a release: a client of each primitive on one connection.
type process struct {
	s     *stage
	wire  *link.Link
	sems  *semaphore.Client
	locks *qlock.Client
	pools *allocator.Client
	sem   *semaphore.Semaphore
	pool  *allocator.Pool[string]
}

// process starts one of the release, nil for today's.
func (s *stage) process(release *scriptkit.Library) *process {
	p := &process{s: s, wire: link.New(nil)}
	redis, err := s.server.Client(testkit.RarePings, p.wire.Wrap)
	require.NoError(s, err)
	s.closing = append(s.closing, redis.Close)
	if release != nil {
		redis = newSwap(today.library, release).client(redis)
	}
	p.sems, err = semaphore.New(redis, semaphore.Config{Lease: lease})
	require.NoError(s, err)
	p.locks, err = qlock.New(redis, qlock.Config{Lease: lease, Swarm: qlock.SwarmConfig{FlushEvery: -1}})
	require.NoError(s, err)
	p.pools, err = allocator.New(redis, allocator.Config{Lease: lease})
	require.NoError(s, err)
	s.closing = append(s.closing, func() {
		ctx := context.Background()
		_, _, _ = p.sems.Close(ctx), p.locks.Close(ctx), p.pools.Close(ctx) // of one that died nothing can be given back
	})
	p.sem, err = p.sems.Semaphore(name, 3)
	require.NoError(s, err)
	p.pool, err = allocator.NewPool(p.pools, name, allocator.PoolConfig[string]{})
	require.NoError(s, err)
	return p
}

// die ends the process: nothing of it reaches the server any more.
func (p *process) die() { p.wire.Cut() }

// pass lets time pass, and everything that happens then.
func (s *stage) pass(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
	synctest.Wait()
}

// ok wants no error.
func (s *stage) ok(err error) {
	require.NoError(s, err)
}

// do runs a command on the server.
func (s *stage) do(words ...string) {
	s.ok(s.redis.Do(context.Background(), s.redis.B().Arbitrary(words...).Build()).Error())
}

// all collects a listing.
func all[T any](s *stage, seq iter.Seq2[T, error]) (items []T) {
	for item, err := range seq {
		s.ok(err)
		items = append(items, item)
	}
	return items
}

// handle is what all handles share.
type handle interface {
	comparable
	Release(ctx context.Context) error
	Renew(ctx context.Context) error
	Detach(ctx context.Context) (berth.Token, error)
	Err() error
	Fence() int64
	ID() string
	Left() time.Duration
	Context() context.Context
}

// wait is an acquire on its way.
type wait[H handle] struct {
	s    *stage
	done chan struct{} // closed when it has returned
	got  H
	err  error
	stop context.CancelFunc
}

// queue begins an acquire that has to wait, and lets it take its place.
func queue[H handle](s *stage, acquire func(ctx context.Context) (H, error)) *wait[H] {
	ctx, stop := context.WithCancel(context.Background())
	w := &wait[H]{s: s, done: make(chan struct{}), stop: stop}
	s.closing = append(s.closing, stop)
	go func() {
		defer close(w.done)
		w.got, w.err = acquire(ctx)
	}()
	s.pass(10 * time.Millisecond)
	w.waits()
	return w
}

// waits wants the acquire not to have returned.
func (w *wait[H]) waits() {
	select {
	case <-w.done:
		require.FailNow(w.s, "it waits", "it returned %v", w.err)
	default:
	}
}

// granted wants the acquire to have been granted by now, with a fence behind after.
func (w *wait[H]) granted(after int64) H {
	synctest.Wait()
	w.s.pass(10 * time.Millisecond) // a confirming call takes its time
	select {
	case <-w.done:
	default:
		require.FailNow(w.s, "it has not been granted")
	}
	w.s.ok(w.err)
	require.Greater(w.s, w.got.Fence(), after, "fences rise")
	return w.got
}

// take acquires what is free.
func take[H handle](s *stage, h H, err error) H {
	s.ok(err)
	return h
}

// lives wants holds that still hold.
func lives[H handle](s *stage, holds ...H) {
	for _, h := range holds {
		s.ok(h.Err())
		s.ok(h.Renew(context.Background()))
	}
}

// giveBack releases holds.
func giveBack[H handle](s *stage, holds ...H) {
	for _, h := range holds {
		s.ok(h.Release(context.Background()))
	}
	synctest.Wait()
}
