package engine

import (
	"github.com/berth-go/berth/internal/wake"
	"github.com/berth-go/berth/pkg/observe"
)

// deliver takes a wake-up. It runs on the goroutine that reads the connection,
// so it looks a claim up and tells it, and waits for nothing.
func (e *Engine) deliver(m wake.Message) {
	switch m.Word {
	case "next":
		for _, kind := range e.cfg.Kinds { // of whichever kind it is: a sweep too early harms nobody
			e.earlierDeadline(Line{kind, m.Name}, m.Int(0))
		}
		return
	case "granted", "too_heavy", "absent", "released", "wanted":
	default:
		return
	}
	c := e.find(m.Field(0))
	if c == nil || c.Name != m.Name {
		return
	}
	if m.Word != "granted" {
		// What ends a claim, or wants it back, is for the server to say: its heartbeat asks at once.
		e.on(c, &event{kind: evPrompted})
		return
	}
	e.on(c, &event{kind: evPushed, text: m.Field(4), gift: gift{m.Int(1), m.Field(3)}})
}

// subscribed runs after every subscription: what was published before may have
// been lost, so the state of all who wait is asked for. It runs on the
// goroutine that reads the connection.
func (e *Engine) subscribed() {
	e.LostData()
	e.mu.Lock()
	waits := make([]Line, 0, len(e.lines))
	for at := range e.lines {
		waits = append(waits, at)
	}
	e.mu.Unlock()
	for _, at := range waits {
		e.beats.Kick(e.cfg.Scripts.Key(at))
	}
	if e.cfg.Observe != nil && e.begin() {
		epoch := int(e.hub.Epoch())
		e.spawn(func() { // an observer has no business on the connection's goroutine
			e.cfg.Observe(observe.Event{Kind: observe.Subscribed, Node: e.cfg.Node, Count: epoch})
		})
		e.work.Done()
	}
}

// deaf runs when the subscription was found to bring nothing, and is given up for
// another one, or was refused.
func (e *Engine) deaf(times int, refusal error) {
	if e.cfg.Observe != nil {
		e.cfg.Observe(observe.Event{Kind: observe.Deaf, Node: e.cfg.Node, Count: times, Err: refusal})
	}
}
