package demo

import (
	"sync"
	"time"
)

// lateness measures how late this machine's timers are: what a busy machine
// delays is not the fault of what it runs. The zero value has not started.
type lateness struct {
	quit chan struct{}
	wait sync.WaitGroup
	last time.Time
	most time.Duration // to be read after stop
}

// beat takes note that a moment has come which is to come so often. It measures from one beat to the
// next, so a process may stand still between two beats wherever it likes.
func (l *lateness) beat(every time.Duration) {
	now := time.Now()
	if !l.last.IsZero() {
		l.most = max(l.most, now.Sub(l.last)-every)
	}
	l.last = now
}

func (l *lateness) start() {
	l.quit = make(chan struct{})
	l.wait.Go(func() {
		const every = 5 * time.Millisecond
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			l.beat(every)
			select {
			case <-ticker.C:
			case <-l.quit:
				return
			}
		}
	})
}

// stop may be called without a start, and only once after one.
func (l *lateness) stop() {
	if l.quit != nil {
		close(l.quit)
		l.wait.Wait()
	}
}

// worst is the most that a timer was late, after stop.
func (l *lateness) worst() time.Duration { return l.most }
