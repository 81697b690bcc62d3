package integration

import (
	"context"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// lag is how much a bare timer and a bare round trip were late while a test ran:
// what the machine, and not Berth, took. Bounds of time are given more by that.
type lag struct {
	done chan struct{}

	mu    sync.Mutex
	worst time.Duration // guarded by mu
	due   time.Time     // guarded by mu: from when on the sample on its way is late
}

// measure starts the measuring; it ends with the test.
func (w *world) measure() *lag {
	w.Helper()
	l := &lag{done: make(chan struct{}), due: time.Now()}
	redis := w.server.Client(w.T)
	ctx, cancel := context.WithCancel(context.Background())
	go l.run(ctx, redis)
	w.Cleanup(func() {
		cancel()
		<-l.done
	})
	return l
}

func (l *lag) run(ctx context.Context, redis rueidis.Client) {
	defer close(l.done)
	const tick = 5 * time.Millisecond
	timer := time.NewTimer(tick)
	defer timer.Stop()
	for {
		l.mu.Lock()
		l.due = time.Now().Add(tick)
		l.mu.Unlock()
		timer.Reset(tick)
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		// One that fails, as while the server is started again, took its time too.
		redis.Do(ctx, redis.B().Ping().Build())
		if ctx.Err() != nil {
			return
		}
		l.mu.Lock()
		l.worst = max(l.worst, time.Since(l.due))
		l.mu.Unlock()
	}
}

// reset forgets what was measured, and what the sample on its way was late before.
func (l *lag) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.worst = 0
	if now := time.Now(); l.due.Before(now) {
		l.due = now
	}
}

// allow is a bound of time plus what so many steps, one after the other, may be
// late by no fault of Berth's.
func (l *lag) allow(bound time.Duration, steps int) time.Duration {
	return bound + time.Duration(steps)*l.most()
}

// most is the worst since the last reset. The sample on its way counts: the stall
// that made something late may not have let it end.
func (l *lag) most() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(l.worst, time.Since(l.due))
}
