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
	most time.Duration // to be read after stop
}

func (l *lateness) start() {
	l.quit = make(chan struct{})
	l.wait.Go(func() {
		const pause = 5 * time.Millisecond
		timer := time.NewTimer(pause)
		defer timer.Stop()
		for {
			due := time.Now().Add(pause)
			timer.Reset(pause)
			select {
			case <-timer.C:
				l.most = max(l.most, time.Since(due))
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
