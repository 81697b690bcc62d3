package model

import (
	"cmp"
	"context"
	"errors"
	"time"

	"pgregory.net/rapid"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/semaphore"
)

func (m *machine) living(t *rapid.T) *process {
	return m.processes[rapid.IntRange(0, nodes-1).Draw(t, "process")]
}

// some draws one of the claims for which is holds, or skips the step.
func (m *machine) some(t *rapid.T, is func(*claim) bool) *claim {
	var which []*claim
	for _, c := range m.claims {
		if is(c) {
			which = append(which, c)
		}
	}
	if len(which) == 0 {
		t.Skip()
	}
	return which[rapid.IntRange(0, len(which)-1).Draw(t, "of these claims")]
}

// inHand says that a living process has the permit.
func (c *claim) inHand() bool { return c.phase == held && c.permit != nil && !c.parked && !c.on.dead }

func (c *claim) returned() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

func (m *machine) cancel(t *rapid.T) {
	m.leave(t, m.some(t, func(c *claim) bool { return c.phase == waiting && !c.on.dead }))
}

func (m *machine) leave(t *rapid.T, c *claim) {
	c.cancel()
	m.Settle(c.returned)
	if c.got != nil { // on a real server the grant may come first
		c.permit = c.got
		m.giveBack(t, c)
	} else if _, r := refused(c.err); m.Exact && (r != berth.ReasonCancelled || !errors.Is(c.err, context.Canceled)) {
		t.Fatalf("a cancelled wait ended with %v", c.err)
	}
	c.phase = gone
}

func (m *machine) release(t *rapid.T) { m.giveBack(t, m.some(t, (*claim).inHand)) }

func (m *machine) giveBack(t *rapid.T, c *claim) {
	err := c.permit.Release(context.Background())
	m.allow(t, err, berth.ErrNotHeld)
	c.phase = gone
}

// allow fails the test for an error; on a real server, where the machine may have
// stood still, it may be that one.
func (m *machine) allow(t *rapid.T, err, late error) {
	t.Helper()
	if err != nil && (m.Exact || !errors.Is(err, late)) {
		t.Fatal(err)
	}
}

func (m *machine) renew(t *rapid.T) {
	c := m.some(t, (*claim).inHand)
	before := c.permit.Err()
	err := c.permit.Renew(context.Background())
	if before == nil {
		m.allow(t, err, berth.ErrNotHeld)
	}
	if err == nil {
		c.extend(m.last.now)
	}
}

// extend starts the lease anew.
func (c *claim) extend(now int64) {
	c.ends = forever
	if c.opts.Lease != berth.Forever {
		c.ends = now + c.opts.Lease.Milliseconds()
	}
	if c.limit > 0 {
		c.ends = min(c.ends, c.limit)
	}
}

func (m *machine) detach(t *rapid.T) {
	c := m.some(t, func(c *claim) bool { return c.inHand() && c.permit.Err() == nil })
	token, err := c.permit.Detach(context.Background())
	m.allow(t, err, berth.ErrNotHeld)
	if err != nil {
		return
	}
	if !c.fixed {
		c.extend(m.last.now)
	}
	c.token, c.parked, c.fixed = token, true, true
}

func (m *machine) resume(t *rapid.T) {
	c := m.some(t, func(c *claim) bool { return c.phase == held && c.parked })
	on := m.living(t)
	p, err := on.sem.Resume(context.Background(), c.token)
	m.allow(t, err, berth.ErrNotHeld)
	if err != nil {
		return
	}
	m.orphan(c)
	c.on, c.permit, c.parked, c.fixed = on, p, false, c.never()
}

// never says that no process renews the claim's hold by itself.
func (c *claim) never() bool { return c.opts.NoRenew || c.opts.Lease == berth.Forever }

func (m *machine) resize(t *rapid.T) {
	n := rapid.IntRange(1, 6).Draw(t, "capacity")
	keep := rapid.IntRange(0, 4).Draw(t, "keep if 0") == 0
	must(t, semaphore.NewOperator(m.living(t).Node).Resize(context.Background(), m.Name, n, &semaphore.ResizeOptions{Keep: keep, Create: true}))
	if !m.Exact {
		// In real time a grant may have come since the last check, after a flush of a name that a waiter has made anew.
		m.before = cmp.Or(m.capacity, m.named)
	}
	if m.capacity, m.keep = n, 0; keep {
		m.keep = 1
	}
}

func (m *machine) force(t *rapid.T) {
	c := m.some(t, func(c *claim) bool { return c.phase == held || c.phase == waiting && !c.lost })
	_, err := m.living(t).Operator().Release(context.Background(), berth.Target{Kind: keyspace.Sem, Name: m.Name, Claim: c.id})
	m.allow(t, err, berth.ErrNotHeld)
	waits := c.phase == waiting && !c.on.dead && err == nil
	m.take(c)
	if waits {
		m.Settle(c.returned)
		if _, r := refused(c.err); m.Exact && r != berth.ReasonGone {
			t.Fatalf("a wait that an operator ended returned %s", r)
		}
	}
}

// take notes that a claim is gone, and not by its holder's call.
func (m *machine) take(c *claim) {
	m.orphan(c)
	c.phase = gone
}

// orphan notes that a handle's hold is not its own any more: its process hears of
// it with the next heartbeat, if not before.
func (m *machine) orphan(c *claim) {
	if c.permit != nil && !c.on.dead {
		m.orphans = append(m.orphans, orphan{c.permit, c.on, m.last.now + m.Lease.Milliseconds()/2})
	}
}

func (m *machine) advance(t *rapid.T) {
	const fine = 16
	d := rapid.SampledFrom([]int{1, 1, 2, 4, 8, 16, 32}).Draw(t, "lease by 16, times")
	m.Advance(m.Lease/fine*time.Duration(d) + time.Duration(rapid.IntRange(0, 9).Draw(t, "ms"))*time.Millisecond)
}

// kill cuts a process off for good, and starts another one.
func (m *machine) kill(t *rapid.T) {
	if len(m.processes) > nodes+3 {
		t.Skip()
	}
	i := rapid.IntRange(0, nodes-1).Draw(t, "process")
	victim := m.processes[i]
	m.processes = append(m.processes, victim)
	victim.dead, m.died = true, true
	victim.link.Cut()
	m.processes[i] = m.start(t)
	m.Settle(func() bool { return true })
	v := m.look(t)
	for _, c := range m.claims {
		switch {
		case c.on != victim:
		case c.phase == held && !c.fixed:
			c.ends, c.fixed = v.holds[c.id], true
		case c.phase == waiting:
			c.ends, c.fixed = v.alive[c.id], true
		}
	}
}

// flush makes the server forget the name.
func (m *machine) flush(t *rapid.T) {
	if rapid.IntRange(0, 5).Draw(t, "flush if 0") > 0 {
		t.Skip()
	}
	m.Advance(time.Millisecond) // fences rise with the clock from here
	m.check(t)
	must(t, m.Redis.Do(context.Background(), m.Redis.B().Del().Key(m.keys()...).Build()).Error())
	m.flushed, m.capacity, m.keep, m.ticket, m.pause = true, 0, 0, 0, pause{}
	for _, c := range m.claims {
		c.forgot = !m.Exact && c.phase <= waiting
		switch {
		case c.phase == held || c.phase == waiting && c.on.dead:
			m.take(c)
		case c.phase == waiting:
			c.lost = true
		}
	}
}
