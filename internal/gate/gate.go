// Package gate bounds the calls of claims that wait which one node has in flight on one server. The
// calls of holds, releases above all, do not pass a gate: they find a short queue.
//
// # Order
//
// Heartbeats of claims that wait pass before first asks, and first asks pass in the order in which they came. Each kind has
// a [Door], and [Share] of its asks may be in flight beside a full window: what one kind waits for keeps out no other kind.
// A call at the gate has not been sent: it can be given up, and leaves nothing behind. rueidis's own
// queue would use up its CallTimeout, have it sent again, and be the longer for each attempt.
//
// # Window
//
// A call weighs what it costs the server, and the calls in flight weigh no more than the window: 512 at most,
// 16 at least. A call may pass where any room is left, whatever it weighs, so that none waits for ever. The window halves
// where an answer is late, once for all that were in flight, and grows by an eighth of what is answered in time. After a
// calm minute, one answer doubles it. So the
// queue in front of a hold's renewal is about as long as what counts as late, however weak the server is. A call
// that counts as unanswered leaves the gate: the window is small by then.
package gate

import (
	"container/list"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/berth-go/berth/internal/clock"
)

const (
	// Most is the largest window. It is half of what rueidis queues for a connection before a
	// call blocks. It is enough for a server far away: 512 in 30 ms are 17 000 a second, more than
	// one Redis runs.
	Most = 512
	// Least is the smallest window.
	Least = 16
	// Share is how many asks of a kind may be in flight however many others are, while no heartbeats wait.
	Share = 16
	// growth is how much must be answered in time for the window to grow by one.
	growth = 8
	// calm is how long after its last change by halves an answer in time doubles the window.
	calm = time.Minute
)

// Beat is what a heartbeat of so many claims of one name weighs: a script, and a quarter of one for each claim.
func Beat(claims int) int { return 1 + claims/4 }

// Gate is safe for concurrent use. Asks pass through its doors.
type Gate struct {
	clock clock.Clock
	slow  time.Duration // an answer that takes longer, and longer than two of the quickest, is late
	far   time.Duration // what the quickest counts as at most

	inside  atomic.Int64 // but for what is inside beside the window
	waiting atomic.Int64 // asks in line, and one where heartbeats wait: then nobody passes by
	window  atomic.Int64 // written with mu held
	quick   atomic.Int64 // how long the quickest answer took

	mu     sync.Mutex
	doors  []*Door       // guarded by mu
	last   int           // guarded by mu: the place in line that was given last
	beats  bool          // guarded by mu: heartbeats wait
	room   func()        // guarded by mu: tells the heartbeat that it may look again
	shrunk time.Duration // guarded by mu: when the window was last halved, or doubled
	credit int           // guarded by mu: what was answered in time since the window last grew
}

// New returns a gate for calls whose answers are of use for so long: an answer that takes a thirtieth of that is late.
func New(c clock.Clock, useful time.Duration) *Gate {
	g := &Gate{clock: c, slow: useful / 30, far: useful / 10}
	g.window.Store(Most)
	g.quick.Store(int64(g.far))
	return g
}

// Strained says whether answers have been late.
func (g *Gate) Strained() bool { return g.window.Load() < Most }

// Door is where the asks of one kind pass a gate. It is safe for concurrent use.
type Door struct {
	gate   *Gate
	asks   atomic.Int64 // inside
	beside atomic.Int64 // how many of them are there beside the window
	line   list.List    // guarded by Gate.mu: of *asking
}

// asking is an ask in line.
type asking struct {
	place int           // among those of all doors
	turn  chan struct{} // closed when it is inside
}

// Door returns another door of the gate.
func (g *Gate) Door() *Door {
	d := &Door{gate: g}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.doors = append(g.doors, d)
	return d
}

// Try reports whether the caller may send an ask at once; Leave must follow then.
func (d *Door) Try() bool {
	if d.gate.waiting.Load() > 0 || !d.gate.admit() {
		return false
	}
	d.asks.Add(1)
	return true
}

// Enter returns when the caller may send an ask. It reports false where ctx has
// ended, or one of the two channels is closed, before that; else Leave must follow.
func (d *Door) Enter(ctx context.Context, closing, other <-chan struct{}) bool {
	if d.Try() {
		return true
	}
	g, a := d.gate, &asking{turn: make(chan struct{})}
	g.mu.Lock()
	g.last++
	a.place = g.last
	place := d.line.PushBack(a)
	g.waiting.Add(1) // before promote looks inside, as Leave does it the other way round
	g.promote()
	g.mu.Unlock()
	select {
	case <-a.turn:
	case <-ctx.Done():
	case <-closing:
	case <-other:
	}
	left := ctx.Err() != nil || isClosed(closing) || isClosed(other) // before mu is held: ctx may find that a hold is over, and an observer is told
	g.mu.Lock()
	defer g.mu.Unlock()
	if !isClosed(a.turn) {
		d.line.Remove(place)
		g.waiting.Add(-1)
		return false
	}
	if left {
		d.leave()
		g.promote()
	}
	return !left
}

// Leave is Gate.Leave for an ask.
func (d *Door) Leave(start time.Duration) {
	d.gate.adapts(1, start)
	d.leave()
	d.gate.left()
}

// leave gives up a place inside: one beside the window first, so that the window fills again.
func (d *Door) leave() {
	d.asks.Add(-1)
	for n := d.beside.Load(); n > 0; n = d.beside.Load() {
		if d.beside.CompareAndSwap(n, n-1) {
			return
		}
	}
	d.gate.inside.Add(-1)
}

// next lets the first in line in. It is called with mu held, and with a place inside.
func (d *Door) next() {
	d.asks.Add(1)
	d.gate.waiting.Add(-1)
	close(d.line.Remove(d.line.Front()).(*asking).turn)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Heartbeats says whom to tell that heartbeats may pass again. room must not block.
func (g *Gate) Heartbeats(room func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.room = room
}

// Admit reports whether heartbeats that are due may pass: Take must follow then. Else no ask passes before
// the next Admit or Waive.
func (g *Gate) Admit() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.wants(true)
	if g.inside.Load() >= g.window.Load() {
		return false
	}
	g.wants(false)
	return true
}

// Take counts the heartbeats that pass; Leave must follow with the same weight.
func (g *Gate) Take(weight int) { g.inside.Add(int64(weight)) }

// Waive says that no heartbeats wait.
func (g *Gate) Waive() {
	if g.waiting.Load() == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.wants(false)
	g.promote()
}

// wants is called with mu held.
func (g *Gate) wants(beats bool) {
	switch {
	case beats && !g.beats:
		g.waiting.Add(1)
	case !beats && g.beats:
		g.waiting.Add(-1)
	}
	g.beats = beats
}

// Leave makes room after heartbeats that were sent at start were answered, or count as unanswered; start is
// below 0 where they were not sent.
func (g *Gate) Leave(weight int, start time.Duration) {
	g.adapts(weight, start)
	g.inside.Add(-int64(weight))
	g.left()
}

// adapts sets the window after a call that was sent, if it says anything of the server.
func (g *Gate) adapts(weight int, start time.Duration) {
	if start >= 0 && (g.inside.Load() > Least || g.Strained()) { // else it is late for no fault of Berth's: the clock need not be looked at
		g.adapt(weight, start)
	}
}

// left lets in others after a call has left.
func (g *Gate) left() {
	if g.waiting.Load() == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.promote()
}

// adapt sets the window by how long a call took.
func (g *Gate) adapt(weight int, start time.Duration) {
	now := g.clock.Now()
	took, quick := now-start, time.Duration(g.quick.Load())
	if took < quick {
		g.quick.Store(int64(took)) // of two at once the later one counts: either is quick
	}
	late := took > g.slow+2*quick
	if !late && !g.Strained() {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	window := g.window.Load()
	switch {
	case !late && now-g.shrunk >= calm: // few answers may come
		window, g.shrunk, g.credit = min(2*window, Most), now, 0
	case !late:
		g.credit += weight
		window = min(window+int64(g.credit/growth), Most)
		g.credit %= growth
	case start < g.shrunk: // that has been heard
	case window <= Least:
		g.quick.Store(int64(min(took, g.far))) // so few do not make it late: the server is far away
	default:
		window, g.shrunk, g.credit = max(window/2, Least), now, 0
	}
	g.window.Store(window)
}

// admit takes a place inside, if there is one.
func (g *Gate) admit() bool {
	for {
		n := g.inside.Load()
		if n >= g.window.Load() {
			return false
		}
		if g.inside.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// promote lets in as many as there is room for. It is called with mu held.
func (g *Gate) promote() {
	if g.beats {
		if g.inside.Load() < g.window.Load() {
			g.room()
		}
		return
	}
	for d := g.first(); d != nil && g.admit(); d = g.first() {
		d.next()
	}
	for _, d := range g.doors {
		for d.line.Len() > 0 && d.asks.Load() < Share {
			d.beside.Add(1)
			d.next()
		}
	}
}

// first is the door of the ask that came first, nil where none waits. It is called with mu held.
func (g *Gate) first() (first *Door) {
	least := 0
	for _, d := range g.doors {
		if f := d.line.Front(); f != nil {
			if a := f.Value.(*asking); first == nil || a.place < least {
				first, least = d, a.place
			}
		}
	}
	return first
}
