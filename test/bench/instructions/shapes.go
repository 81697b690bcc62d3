package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// opens opens a node with something of one of the primitives.
type opens[C any] func(p *probe) (C, *conn, error)

// takes takes a hold, and waits for it where it must. The number is that of the cycle.
type takes[C, H any] func(ctx context.Context, on C, i int) (H, error)

// releaser is a hold.
type releaser interface {
	Release(ctx context.Context) error
}

// calls calls something of it in each cycle.
func calls[C any](open opens[C], call func(ctx context.Context, on C, i int) error) func(*probe) (cycle, error) {
	return func(p *probe) (cycle, error) {
		on, _, err := open(p)
		return func(i int) error { return call(p.ctx, on, i) }, err
	}
}

// again takes and releases in each cycle.
func again[C any, H releaser](open opens[C], take takes[C, H]) func(*probe) (cycle, error) {
	return calls(open, func(ctx context.Context, on C, i int) error {
		held, err := take(ctx, on, i)
		if err != nil {
			return err
		}
		return held.Release(ctx)
	})
}

// over takes one hold for each cycle before the first, and does something with it in its cycle.
// It waits in between: a renewal that falls into the second of the grant costs less, and how
// many do would depend on the machine.
func over[C, H any](open opens[C], take takes[C, H], do func(ctx context.Context, on C, held H) error) func(*probe) (cycle, error) {
	return func(p *probe) (cycle, error) {
		on, _, err := open(p)
		if err != nil {
			return nil, err
		}
		held := make([]H, p.all())
		for i := range held {
			if held[i], err = take(p.ctx, on, i); err != nil {
				return nil, err
			}
		}
		return func(i int) error { return do(p.ctx, on, held[i]) }, pause(p.ctx, time.Second)
	}
}

// queue is the line for a name that is held.
type queue[C, H any] struct {
	on      C
	conn    *conn
	take    func(ctx context.Context) (H, error)
	granted chan H
}

// newQueue takes as many holds as there are holders, and has so many more calls wait. It
// returns the last of the holds.
func newQueue[C, H any](p *probe, open opens[C], take takes[C, H], holders, waiting int) (q *queue[C, H], last H, err error) {
	on, n, err := open(p)
	if err != nil {
		return nil, last, err
	}
	q = &queue[C, H]{
		on: on, conn: n, granted: make(chan H, 1),
		take: func(ctx context.Context) (H, error) { return take(ctx, on, 0) },
	}
	for range holders {
		if last, err = q.take(p.ctx); err != nil {
			return nil, last, err
		}
	}
	for range waiting { // all at once, so that they have their heartbeats together
		q.ask(p.ctx)
	}
	for range waiting {
		if _, err := receive(p.ctx, n.queued); err != nil {
			return nil, last, err
		}
	}
	if waiting > 0 {
		err = n.listens(p.ctx)
	}
	return q, last, err
}

// waited has a second call wait for the name, so that the node listens. When it opens, both have released it.
func waited[C any, H releaser](open opens[C], take takes[C, H]) opens[C] {
	return func(p *probe) (on C, n *conn, err error) {
		q, held, err := newQueue(p, open, take, 1, 1)
		if err != nil {
			return on, nil, err
		}
		if err := held.Release(p.ctx); err != nil {
			return on, nil, err
		}
		if held, err = receive(p.ctx, q.granted); err != nil {
			return on, nil, err
		}
		return q.on, q.conn, held.Release(p.ctx)
	}
}

// ask has one more call wait. The call ends with its own context.
func (q *queue[C, H]) ask(its context.Context) {
	go func() {
		held, err := q.take(its)
		if err != nil {
			return // its context has ended, or the node was closed
		}
		q.granted <- held
	}()
}

// join asks, and returns when the claim has joined the line.
func (q *queue[C, H]) join(ctx, its context.Context) error {
	q.ask(its)
	if _, err := receive(ctx, q.conn.queued); err != nil {
		return err
	}
	return q.conn.listens(ctx)
}

// turns has calls wait behind the holders. In each cycle a holder releases, the first in line
// gets what was released, and the releaser joins the line again.
func turns[C any, H releaser](open opens[C], take takes[C, H], holders, waiting int) func(*probe) (cycle, error) {
	return func(p *probe) (cycle, error) {
		q, holder, err := newQueue(p, open, take, holders, waiting)
		return func(int) error {
			if err := holder.Release(p.ctx); err != nil {
				return err
			}
			if holder, err = receive(p.ctx, q.granted); err != nil {
				return err
			}
			return q.join(p.ctx, p.ctx)
		}, err
	}
}

// joins has one more call wait in each cycle.
func joins[C any, H releaser](open opens[C], take takes[C, H], holders int) func(*probe) (cycle, error) {
	return func(p *probe) (cycle, error) {
		q, _, err := newQueue(p, open, take, holders, 0)
		return func(int) error { return q.join(p.ctx, p.ctx) }, err
	}
}

// leaves has the first in line give up in each cycle. The line is made before.
func leaves[C any, H releaser](open opens[C], take takes[C, H], holders int) func(*probe) (cycle, error) {
	return func(p *probe) (cycle, error) {
		q, _, err := newQueue(p, open, take, holders, 0)
		if err != nil {
			return nil, err
		}
		cancels := make([]context.CancelFunc, p.all()+1) // the last one stays
		for i := range cancels {
			its, cancel := context.WithCancel(p.ctx)
			cancels[i] = cancel
			p.ends = append(p.ends, cancel)
			if err := q.join(p.ctx, its); err != nil {
				return nil, err
			}
		}
		return func(i int) error {
			before := q.conn.answered.Load()
			cancels[i]()
			return q.conn.answers(p.ctx, before, 1) // the call itself returns earlier
		}, nil
	}
}

// beats takes holds, all at once, of a node whose lease is short. A cycle waits until they were
// renewed on so many names.
func beats[C, H any](open opens[C], take takes[C, H], holds int, names int64) func(*probe) (cycle, error) {
	return func(p *probe) (cycle, error) {
		on, n, err := open(p)
		if err != nil {
			return nil, err
		}
		taken := make(chan error, holds)
		for i := range holds {
			go func() {
				_, err := take(p.ctx, on, i)
				taken <- err
			}()
		}
		for range holds {
			err = errors.Join(err, <-taken)
		}
		before := n.renewed.Load()
		return func(int) error {
			before += names
			return await(p.ctx, &n.renewed, before)
		}, err
	}
}

// wanted checks that a call was refused as it should be.
func wanted(err, refusal error) error {
	if errors.Is(err, refusal) {
		return nil
	}
	return fmt.Errorf("%w in place of %w", cmp.Or(err, errors.New("no error")), refusal)
}
