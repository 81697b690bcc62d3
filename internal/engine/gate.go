package engine

import (
	"container/list"
	"context"
	"sync"
	"sync/atomic"
)

// mostAsking is how many acquires of a client are in flight and have not yet counted as
// unanswered. It is half of what rueidis queues for a connection before a call blocks, so
// that releases and renewals, which do not wait here, find room. It is enough for a server
// far away: 512 in 30 ms are 17 000 a second, more than one Redis runs. On a server that takes
// 1 ms for a script, the last of them has its answer after half a second, well within
// CallTimeout.
const mostAsking = 512

// gate bounds the acquires in flight. The others wait in the process, first come,
// first served: in rueidis's own queue they would use up their CallTimeout, be asked
// for again, and make the queue longer with each attempt.
type gate struct {
	inside  atomic.Int64
	waiting atomic.Int64 // in line

	mu   sync.Mutex
	line list.List // guarded by mu: of chan struct{}, closed when its owner is inside
}

// enter returns when the caller may send an acquire. It reports false where ctx has
// ended, or closing is closed, before that; else leave must follow.
func (g *gate) enter(ctx context.Context, closing <-chan struct{}) bool {
	if g.waiting.Load() == 0 && g.admit() {
		return true
	}
	turn := make(chan struct{})
	g.mu.Lock()
	place := g.line.PushBack(turn)
	g.waiting.Add(1) // before promote looks inside, as leave does it the other way round
	g.promote()
	g.mu.Unlock()
	select {
	case <-turn:
	case <-ctx.Done():
	case <-closing:
	}
	left := ctx.Err() != nil // before mu is held: ctx may find that a hold is over, and an observer is told
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-turn:
		if !left && !isClosed(closing) {
			return true
		}
		g.inside.Add(-1)
		g.promote()
	default:
		g.line.Remove(place)
		g.waiting.Add(-1)
	}
	return false
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// leave makes room for the next in line.
func (g *gate) leave() {
	g.inside.Add(-1)
	if g.waiting.Load() == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.promote()
}

// admit takes a place inside, if there is one.
func (g *gate) admit() bool {
	for {
		n := g.inside.Load()
		if n >= mostAsking {
			return false
		}
		if g.inside.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// promote lets in as many as there is room for. It is called with mu held.
func (g *gate) promote() {
	for first := g.line.Front(); first != nil && g.admit(); first = g.line.Front() {
		g.line.Remove(first)
		g.waiting.Add(-1)
		close(first.Value.(chan struct{}))
	}
}
