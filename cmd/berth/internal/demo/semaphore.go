package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

// workshop is the name of the semaphore.
const workshop = "workshop"

var semaphorePlan = plan{
	workers: 8, capacity: 2, lease: 1500 * time.Millisecond, length: 4500 * time.Millisecond,
	askEvery: 200 * time.Millisecond, victim: 3, killAfter: 400 * time.Millisecond,
	stays: func(s *story, worker int) bool {
		// The last two stay until both are inside and the dead one's lease has ended: only
		// with its place are there two, and so it went to one of those in line.
		dead, last := s.turn(3), s.turn(8)
		return untilTwoAsked(s, worker) || worker > 6 && (dead.over == nil || last.granted == nil)
	},
	// Not all are inside equally long, or all would look alike.
	order: func(worker int) order {
		return order{Work: 700*time.Millisecond + time.Duration(worker*37%5)*60*time.Millisecond}
	},
}

var semaphoreAct = act{
	name:  "semaphore",
	title: "Berth demo: a semaphore between processes",
	about: fmt.Sprintf(`Here are %d processes and a workshop with room for %d of them. Each asks for a
place, waits in line until it is its turn, works, and gives its place back.
Worker %d will be killed (SIGKILL) while it is inside, and cannot give its place
back: it comes free when its lease of %s ends.

No Redis is needed: the server is built into this demo. The processes are real.
`, semaphorePlan.workers, semaphorePlan.capacity, semaphorePlan.victim, semaphorePlan.lease),
	next: `What this was: a hand-off is one script on the server, which frees a place and
grants it to the next in line in the same step; that one process is told. Nobody
polls, nobody can jump the line, and whoever dies loses its place by itself.

With a Redis or Valkey you can have the same for any command, for instance in
two terminals at once:

  berth run --sem workshop --capacity 1 -- sleep 10
  berth sem show workshop

'berth run --help' says more; in Go it is package pkg/semaphore.`,
	play: playSemaphore,
	join: joinSemaphore,
}

func playSemaphore(ctx context.Context, s *stage) ([]fact, error) {
	redis, err := s.server.Client()
	if err != nil {
		return nil, err
	}
	defer redis.Close()
	on, err := s.onServer(redis, keyspace.Sem, workshop)
	if err != nil {
		return nil, err
	}
	e, err := s.direct(ctx, semaphorePlan, on)
	if err != nil {
		return nil, err
	}
	return e.facts(), nil
}

// joinSemaphore is what a worker of this act is on its side.
func joinSemaphore(n *node.Node, _ time.Duration) *desk {
	sem := semaphore.New(n, workshop, semaphorePlan.capacity, semaphore.Config{})
	return &desk{enter: func(ctx context.Context, _ order) (place, error) { return sem.Acquire(ctx, nil) }}
}
