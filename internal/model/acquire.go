package model

import (
	"context"
	"errors"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/semaphore"
)

// queued is what an acquire comes to that is to wait, beside the reasons.
const queued berth.Reason = "queued"

func (m *machine) options(t *rapid.T) (o semaphore.AcquireOptions, wait bool) {
	o.Weight = rapid.SampledFrom([]int{1, 1, 2, 3}).Draw(t, "weight")
	o.Priority = rapid.SampledFrom([]int{0, 0, 0, 5}).Draw(t, "priority")
	o.NoRenew = rapid.IntRange(0, 2).Draw(t, "fixed if 0") == 0
	o.Lease = rapid.SampledFrom([]time.Duration{0, 0, 0, m.Lease / 8, 3 * m.Lease, berth.Forever}).Draw(t, "lease")
	o.MaxHold = rapid.SampledFrom([]time.Duration{0, 0, 0, m.Lease / 4, 2 * m.Lease}).Draw(t, "max hold")
	return o, rapid.IntRange(0, 3).Draw(t, "try if 0") > 0
}

func (m *machine) acquire(t *rapid.T) {
	c := &claim{on: m.living(t), done: make(chan struct{}), least: m.capacity, above: m.fence}
	o, wait := m.options(t)
	if c.opts = o; o.Lease == 0 {
		c.opts.Lease = c.on.lease
	}
	want := m.expected(o, wait)
	var ctx context.Context
	ctx, c.cancel = context.WithCancel(context.Background())
	ask := c.on.sem.TryAcquire
	if wait {
		ask = c.on.sem.Acquire
	}
	m.claims = append(m.claims, c)
	go func() {
		defer close(c.done)
		c.got, c.err = ask(ctx, &o)
	}()
	m.Settle(func() bool {
		c.id = m.newcomer(t, c.on) // by the next look it may have gone again
		return c.returned() || c.id != ""
	})
	if c.id == "" {
		c.id = m.newcomer(t, c.on)
	}
	is := queued
	if c.returned() {
		if c.got != nil {
			c.id, is = c.got.ID(), ""
		} else {
			c.id, is = refused(c.err)
			m.pause.told(t, m, c.err)
			c.phase = gone
		}
	}
	if m.Exact {
		same(t, "what the acquire came to and what it should", is, want)
	}
	if c.id != "" {
		m.known[c.id] = c
	}
}

// expected is what an acquire must come to in this instant: what has expired is
// dropped and handed on first. "" is a grant.
func (m *machine) expected(o semaphore.AcquireOptions, wait bool) berth.Reason {
	room, v := m.capacity, &m.last
	if room == 0 {
		room = m.named
	}
	if o.Weight > room {
		return berth.ReasonTooHeavy
	}
	if m.pause.lasts(v.now) {
		if wait {
			return queued
		}
		return berth.ReasonPaused
	}
	free := room - v.used(v.now)
	head := ""
	for _, id := range v.line(v.now) {
		if weight := v.records[id].Weight; weight > free && weight <= room {
			head = id
			break
		} else if weight <= free {
			free -= weight
		}
	}
	next := head == "" || o.Priority > v.records[head].Priority
	switch {
	case o.Weight <= free && next:
		return ""
	case wait:
		return queued
	case o.Weight <= free:
		return berth.ReasonQueuedAhead
	}
	return berth.ReasonFull
}

// newcomer is the claim of a process that the server has and the model has not.
func (m *machine) newcomer(t *rapid.T, on *process) string {
	for id := range m.look(t).records {
		if m.known[id] == nil && strings.HasPrefix(id, on.ID()+".") {
			return id
		}
	}
	return ""
}

// refused is the claim that an acquire's error names, which the server may have yet: on
// a slow machine it is given back behind the call. And why there is no grant.
func refused(err error) (id string, why berth.Reason) {
	var refusal *berth.AcquireError
	if errors.As(err, &refusal) {
		return refusal.Claim, refusal.Reason
	}
	return "", berth.ReasonFailed
}
