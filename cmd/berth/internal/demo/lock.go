package demo

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
)

const (
	invoice = "invoice:42" // the name of the lock
	twice   = 4            // the worker that enters a second time: it is not the last
)

var lockPlan = plan{
	workers: 5, capacity: 1, lease: time.Second, length: 3000 * time.Millisecond,
	askEvery: 100 * time.Millisecond, victim: 2, killAfter: 300 * time.Millisecond,
	stays: untilTwoAsked,
	order: func(worker int) order {
		o := order{Work: 450 * time.Millisecond}
		if worker == twice {
			o.Again = 250 * time.Millisecond
		}
		return o
	},
}

var lockAct = act{
	name:  "lock",
	title: "Berth demo: a lock between processes",
	about: fmt.Sprintf(`Here are %d processes that all change the same invoice, one at a time, in the
order in which they came. Worker %d will be killed (SIGKILL) while it holds the
lock; its lease is %s. Worker %d will lock a second time what it holds already.
`, lockPlan.workers, lockPlan.victim, lockPlan.lease, twice),
	next: `What this was: the lock of a dead process goes to the next in line when its
lease ends, without anybody who asks and asks again. Every grant has a number,
the fence, higher than all before: whatever the lock protects can refuse a lower
one, and so a process that was stopped, and wakes after its lease.

With a Redis or Valkey you can have the same for any command:

  berth run --lock invoice:42 -- sleep 10
  berth lock show invoice:42

'berth run --help' says more; in Go it is package pkg/qlock.`,
	play: playLock,
	join: joinLock,
}

func playLock(ctx context.Context, s *stage) ([]fact, error) {
	redis, err := s.server.Client()
	if err != nil {
		return nil, err
	}
	defer redis.Close()
	on, err := s.onServer(redis, keyspace.Lock, invoice)
	if err != nil {
		return nil, err
	}
	e, err := s.direct(ctx, lockPlan, on)
	if err != nil {
		return nil, err
	}
	return e.lockFacts(), nil
}

// joinLock is what a worker of this act is on its side.
func joinLock(n *node.Node, lease time.Duration) *desk {
	locks := qlock.New(n, qlock.Config{Lease: lease})
	return &desk{
		enter: func(ctx context.Context, _ order) (place, error) { return locks.Lock(ctx, invoice, nil) },
		again: func(_ context.Context, inside place) (place, error) {
			ctx := inside.(*qlock.Lock).Context() // it knows whose the lock is
			return locks.Lock(ctx, invoice, &qlock.LockOptions{Conflict: qlock.WorkThrough})
		},
	}
}

// lockFacts looks at the evidence of the lock. Each of them can be wrong.
func (e *evidence) lockFacts() []fact {
	return []fact{
		e.story.neverMoreThanCapacity(),
		e.story.inOrder(),
		e.story.fencesRose(),
		e.story.handedOn(),
		e.story.recovered(e.late),
		e.story.reentered(twice),
		e.givenBack(),
	}
}

// fencesRose compares the fences with the moments at which the workers came in, by
// what they themselves say.
func (s *story) fencesRose() fact {
	byEntrance := slices.DeleteFunc(slices.Clone(s.turns), func(t *turn) bool { return t.granted == nil })
	slices.SortFunc(byEntrance, func(a, b *turn) int { return int(*a.granted - *b.granted) })
	for i, t := range byEntrance[1:] {
		if before := byEntrance[i]; t.fence <= before.fence {
			return right(false, "worker %d came in after worker %d, with a fence that is not higher: %d after %d",
				t.worker, before.worker, t.fence, before.fence)
		}
	}
	return right(true, "Each had a higher fence than all before, also after the one that was killed.")
}

// reentered looks at the second entry of a worker.
func (s *story) reentered(worker int) fact {
	t := s.turn(worker)
	behind := 0 // how many waited then
	for _, other := range s.turns {
		if other.queued != nil && t.again != nil && *other.queued < *t.again && (other.granted == nil || *other.granted > *t.again) {
			behind++
		}
	}
	switch {
	case t.again == nil || t.once == nil || t.leaving == nil:
		return right(false, "worker %d was not inside a second time", worker)
	case behind == 0:
		return right(false, "nobody waited when worker %d asked again, so that shows nothing", worker)
	case t.againFence != t.fence:
		return right(false, "the second entry of worker %d has the fence %d, and not that of its hold, %d", worker, t.againFence, t.fence)
	}
	for _, other := range s.turns {
		if other.handed != nil && *other.handed > *t.handed && *other.handed < *t.leaving-blur {
			return right(false, "worker %d was granted the lock before worker %d had given back both of its entries", other.worker, worker)
		}
	}
	return right(true, "Worker %d locked a second time what it held, past the line and with the same fence; the next came in when both entries were given back.", worker)
}
