package exporter

import (
	"context"
	"time"

	"github.com/berth-go/berth/internal/guard"
	"github.com/berth-go/berth/internal/watch"
	"github.com/berth-go/berth/pkg/inspect"
)

// search looks for claims that wait for each other, beside the readings: none waits for it. Its methods are called one after
// the other.
type search struct {
	find func(ctx context.Context, o *inspect.CycleOptions) (inspect.Cycles, error)
	ctx  context.Context
	end  context.CancelFunc

	began time.Time
	done  chan searched   // has room for one; nil: none is under way
	last  searched        // err is of the last one that ended
	found *inspect.Cycles // of the last one that succeeded, nil: none has yet
}

type searched struct {
	found inspect.Cycles
	took  time.Duration
	err   error
}

func newSearch(find func(context.Context, *inspect.CycleOptions) (inspect.Cycles, error)) *search {
	s := &search{find: find}
	s.ctx, s.end = context.WithCancel(context.Background())
	return s
}

// next has a search begin, unless one is under way or the last one began too shortly ago.
func (s *search) next() {
	if s.look(); s.done != nil || !s.began.IsZero() && time.Since(s.began) < watch.AsidePace(s.last.took) {
		return
	}
	began, done := time.Now(), make(chan searched, 1)
	s.began, s.done = began, done
	go func() {
		var now searched
		now.err = guard.Run("the search for cycles", nil, func() (err error) {
			now.found, err = s.find(s.ctx, watch.Aside())
			return err
		})
		now.took = time.Since(began)
		done <- now
	}()
}

// look learns the result of the search that was under way.
func (s *search) look() {
	select {
	case s.last = <-s.done:
		if s.done = nil; s.last.err == nil {
			found := s.last.found
			s.found = &found
		}
	default:
	}
}

// close ends the search that is under way.
func (s *search) close() {
	if s.end(); s.done != nil {
		<-s.done
	}
}
