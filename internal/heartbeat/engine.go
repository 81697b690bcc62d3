package heartbeat

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/berth-go/berth/internal/clock"
	"github.com/berth-go/berth/internal/gate"
)

// Engine keeps the leases of one client. It is safe for concurrent use.
type Engine struct {
	clock clock.Clock
	beat  Beat
	size  int
	rand  func() float64
	// patience is Config.Timeout.
	patience time.Duration
	over     func(Flown)
	gate     func(key string) *gate.Gate // Config.Gate

	ctx    context.Context // ends with Stop
	cancel context.CancelFunc
	wake   chan struct{}  // tells the timing goroutine to look again
	tasks  sync.WaitGroup // the timing goroutine and every flush in flight

	// mu guards what follows, all lanes, and the fields of all leases that
	// say so. No callback and no Beat runs under it; the function given to
	// Update does.
	mu sync.Mutex
	// lanes has a lane for every track with a registered lease, or with a batch
	// still in flight.
	lanes map[track]*lane
	// kept is how many leases are in lanes.
	kept int
	// spare is a lane that was dropped, nil for none. Nothing refers to it.
	spare *lane
	// doors has first the one of holds, and then one for each gate.
	doors []*door
	// flights has the batches in flight, by when they count as unanswered.
	flights order[*batch]
	// events has the leases that something will happen to by itself, but for those
	// that are pending.
	events order[*Lease]
	// pending has the leases that were added a short while ago.
	pending pending
	// armed is when the timing goroutine wakes, and never later than the
	// first event, the first lane that is due, the first batch that counts
	// as unanswered and the first look at what is pending.
	armed            time.Duration
	started, stopped bool
}

// call is a callback that is due.
type call struct {
	lease *Lease
	epoch uint32
	run   func()
}

// New returns an engine. It starts nothing; the first Add does.
func New(cfg Config) *Engine {
	if cfg.BatchSize <= 0 {
		cfg.BatchSize = 200
	}
	if cfg.Rand == nil {
		cfg.Rand = rand.Float64
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = never
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Engine{
		clock: cfg.Clock, beat: cfg.Beat, size: cfg.BatchSize, rand: cfg.Rand, patience: cfg.Timeout, over: cfg.Over, gate: cfg.Gate,
		ctx: ctx, cancel: cancel,
		wake:  make(chan struct{}, 1),
		lanes: make(map[track]*lane),
		doors: []*door{newDoor(nil)},
		flights: order[*batch]{
			at:   func(b *batch) time.Duration { return b.start + min(b.limit, never-b.start) },
			slot: func(b *batch) *int32 { return &b.slot },
		},
		events: order[*Lease]{
			at:   func(l *Lease) time.Duration { return l.event },
			slot: func(l *Lease) *int32 { return &l.eventSlot },
		},
		pending: pending{look: never},
		armed:   never,
	}
}

// Add registers a lease under a key. It is first due a third of the lease after
// the request that spec.Deadline comes from. A lease that was removed, or is
// over, can be added again and starts anew; so does one that is registered, and
// whatever is in flight for it no longer counts. On a stopped engine Add only
// sets what Deadline and Err look at. It panics when spec.Lease is below 1 ms.
func (e *Engine) Add(l *Lease, key string, spec Spec) {
	spec.check()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.forget(l)
	l.begin(spec)
	if e.stopped {
		return
	}
	if !e.started {
		e.started = true
		e.tasks.Go(e.run)
	}
	now := e.clock.Now()
	l.key, l.due = key, l.firstDue(now)
	if !e.pending.add(l, now) {
		e.enter(l)
	}
	e.rouse(now)
}

// Remove forgets a lease, if it is registered. No callback for it begins after
// Remove has returned; one that has begun may still be running. What is in
// flight for it no longer counts. Deadline and Err go on to answer.
func (e *Engine) Remove(l *Lease) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.forget(l)
}

// Kick makes all leases of the key due now, or those of all keys if it is "".
// Those in flight go once more when their batch is back.
func (e *Engine) Kick(key string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.clock.Now()
	e.pending.each(never, e.enter)
	if key == "" {
		for _, ln := range e.lanes {
			e.kick(ln, now)
		}
	}
	for bits := range tracks { // more than a key has, and few to look at
		for _, waits := range []bool{false, true} {
			if ln := e.lanes[track{key, bits, waits}]; ln != nil {
				e.kick(ln, now)
			}
		}
	}
	e.rouse(now)
}

// Hurry makes a lease due now, if it is registered. One that is in flight goes once
// more when its batch is back.
func (e *Engine) Hurry(l *Lease) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !l.registered() || e.stopped {
		return
	}
	now := e.clock.Now()
	e.settle(l)
	if l.dueSlot == 0 {
		l.hurried = true
		return
	}
	l.due = min(l.due, now)
	e.queue(l)
	e.rouse(now)
}

// Update changes a lease in one step. f sees the spec as it now stands, its
// Deadline that of the last answer, and must not call the engine. If f changes
// Lease, Pace or Deadline, the lease is due anew, as with Add, and a beat in
// flight no longer moves its deadline. Later beats do: what must stay low until
// a call is answered belongs in Limit. The next beat waits for the one in flight,
// which counts as unanswered by the pace as it was; where that matters, Add it
// anew. Update returns false, and has changed nothing, when the lease is not
// registered or is over.
func (e *Engine) Update(l *Lease, f func(*Spec)) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !l.registered() || e.stopped {
		return false
	}
	now := e.clock.Now()
	e.settle(l)
	defer e.rouse(now)
	if l.Err(now) != nil {
		return false
	}
	old, spec := l.spec, l.spec
	f(&spec)
	spec.check()
	moved := spec.Lease != old.Lease || spec.Pace != old.Pace || spec.Deadline != old.Deadline
	if !l.put(spec) {
		return false
	}
	if moved {
		l.changes++
		l.due = l.firstDue(now)
	}
	if moved || spec.Ends != old.Ends {
		e.reorder(l)
	}
	e.schedule(l)
	return true
}

// Stop ends the engine: no callback begins after it, batches in flight are
// cancelled, and it waits for them and for the engine's goroutine. It may come
// before the first Add, more than once, and concurrently.
func (e *Engine) Stop() {
	e.mu.Lock()
	e.stopped = true // from here on nothing is added to tasks
	e.cancel()
	e.mu.Unlock()
	e.tasks.Wait()
}

// run is the timing goroutine.
func (e *Engine) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		pause, calls := e.turn()
		if len(calls) > 0 {
			e.do(calls)
			continue // that took time: look at the clock again
		}
		if pause == never {
			timer.Stop()
		} else {
			timer.Reset(pause)
		}
		select {
		case <-timer.C:
		case <-e.wake:
		case <-e.ctx.Done():
			return
		}
	}
}

// turn does what is due and says how long there is nothing to do.
func (e *Engine) turn() (pause time.Duration, calls []call) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped {
		return never, nil
	}
	now := e.clock.Now()
	e.admit(now)
	calls = e.sweep(now)
	var missed []call
	for e.flights.next() <= now {
		b, _ := e.flights.first()
		missed = e.miss(missed, b, now)
	}
	if len(missed) > 0 { // they may be many, and what is due must not wait for them
		e.tasks.Go(func() { e.do(missed) })
	}
	e.depart(now)
	e.armed = e.next()
	if e.armed == never {
		return never, calls
	}
	return e.armed - now, calls
}

// The methods below are called with mu held, but for do.

// sweep takes out what is over, and collects the callbacks that are due.
func (e *Engine) sweep(now time.Duration) (calls []call) {
	for e.events.next() <= now {
		l, _ := e.events.first()
		if cause := l.Err(now); cause != nil {
			e.forget(l)
			if ended := l.spec.Ended; ended != nil {
				calls = append(calls, call{l, l.epoch, func() { ended(l, cause) }})
			}
			continue
		}
		if warn := l.spec.OnWarn; warn != nil {
			calls = append(calls, call{l, l.epoch, func() { warn(l) }})
		}
		l.warned()
		e.schedule(l)
	}
	return calls
}

// do runs callbacks. Each is asked for again right before: a Remove may have
// come since it was collected.
func (e *Engine) do(calls []call) {
	for _, c := range calls {
		e.mu.Lock()
		wanted := c.lease.epoch == c.epoch && !e.stopped
		e.mu.Unlock()
		if wanted {
			c.run()
		}
	}
}

// forget takes a lease out of everything.
func (e *Engine) forget(l *Lease) {
	l.epoch++
	if l.pending {
		e.pending.drop(l)
	}
	if l.lane != nil {
		e.events.drop(l)
		e.leave(l)
	}
}

// admit has those of the pending leases enter their lanes that need it by now.
func (e *Engine) admit(now time.Duration) {
	e.pending.each(now, func(l *Lease) {
		if !e.pending.add(l, now) {
			e.enter(l)
		}
	})
}

// settle has a registered lease enter its lane, if it has not yet.
func (e *Engine) settle(l *Lease) {
	if l.pending {
		e.pending.drop(l)
		e.enter(l)
	}
}

// schedule puts a registered lease where its next event belongs.
func (e *Engine) schedule(l *Lease) {
	l.event = l.next()
	if l.event == never {
		e.events.drop(l)
		return
	}
	e.events.set(l)
}

// next is when the timing goroutine has to do something.
func (e *Engine) next() time.Duration {
	return min(e.events.next(), e.departure(), e.flights.next(), e.pending.look)
}

// rouse wakes the timing goroutine if something comes before it would wake by
// itself. It also wakes it when it should have woken already: after a suspension
// its timer, which stood still meanwhile, is late.
func (e *Engine) rouse(now time.Duration) {
	next := e.next()
	if next >= e.armed && e.armed > now {
		return
	}
	e.armed = next
	e.stir()
}

// stir has the timing goroutine look again.
func (e *Engine) stir() {
	select {
	case e.wake <- struct{}{}:
	default: // it has been told
	}
}
