package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// step is a call, or some calls, whose instructions are counted.
type step struct {
	name string
	// does says what one cycle is.
	does string
	// scripts is how many the server runs in one cycle, 0 where that may differ.
	scripts float64
	// budget is how many thousands of instructions one cycle may take, 0 for no bound.
	budget float64
	// cycles is how many are counted, warm how many come before. Default 150 and 30. The
	// server has the garbage collector of Lua work after every 50 scripts, so it is best if
	// 50 times something are counted.
	cycles, warm int
	// prepare makes everything that p.all() cycles need.
	prepare func(p *probe) (cycle, error)
}

// cycle runs the step once. It is called with 0, 1, 2 and so on.
type cycle func(i int) error

// probe measures one step.
type probe struct {
	*machine
	ctx   context.Context
	step  step
	conns []*conn
	ends  []func()
	odd   []map[string]int // what ran returned, where that was not what it should be
}

// all is how many cycles there will be, those before the count included.
func (p *probe) all() int { return p.warm() + p.cycles() }

func (p *probe) cycles() int { return cmp.Or(p.step.cycles, 150) }

func (p *probe) warm() int { return cmp.Or(p.step.warm, 30) }

// measure returns how many instructions and scripts one cycle of the step takes.
func (p *probe) measure() (instructions, scripts float64, err error) {
	defer func() {
		err = errors.Join(err, p.empty(context.WithoutCancel(p.ctx))) // so that there is little to release
		for _, end := range slices.Backward(p.ends) {
			end()
		}
	}()
	if err := p.forget(p.ctx); err != nil {
		return 0, 0, err
	}
	one, err := p.step.prepare(p)
	if err != nil {
		return 0, 0, fmt.Errorf("prepare: %w", err)
	}
	next := 0
	repeat := func(n int) error {
		_, before := p.scripts()
		for range n {
			if err := one(next); err != nil {
				return fmt.Errorf("cycle %d: %w", next, err)
			}
			next++
		}
		return p.settle(before + int64(math.Round(float64(n)*p.step.scripts)))
	}
	if err := repeat(p.warm()); err != nil {
		return 0, 0, err
	}
	for _, n := range p.conns {
		n.mu.Lock()
		clear(n.ran)
		n.mu.Unlock()
	}
	instructions, scripts, err = p.count(p.ctx, func() error { return repeat(p.cycles()) })
	n := float64(p.cycles())
	if scripts != n*p.step.scripts {
		p.odd = p.ran()
	}
	return instructions / n, scripts / n, err
}

// ran says which scripts the nodes have called since the count began, and how often.
func (p *probe) ran() (all []map[string]int) {
	for _, n := range p.conns {
		n.mu.Lock()
		all = append(all, maps.Clone(n.ran))
		n.mu.Unlock()
	}
	return all
}

// scripts returns how many scripts were sent and how many answered.
func (p *probe) scripts() (sent, answered int64) {
	for _, n := range p.conns {
		answered += n.answered.Load() // first, so that none seems answered that is under way
		sent += n.sent.Load()
	}
	return sent, answered
}

// settle waits until so many scripts were answered, for a minute at most, and none is under way
// for a while: the library sends some after the call has returned.
func (p *probe) settle(least int64) error {
	const while = 30 * time.Millisecond
	ctx, cancel := context.WithTimeout(p.ctx, time.Minute)
	defer cancel()
	for before := int64(-1); ; {
		sent, answered := p.scripts()
		if sent == answered && sent == before && sent >= least {
			return nil
		}
		before = sent
		if err := pause(ctx, while); err != nil {
			return fmt.Errorf("wait for %d scripts, of which %d came: %w", least, answered, err)
		}
	}
}
