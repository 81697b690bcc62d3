package main

import (
	"context"
	"strings"

	"github.com/berth-go/berth/test/bench/contender"
)

// peerSteps are the cycles of what others send for a semaphore of 10 and a pool of 100.
func peerSteps() []step {
	var steps []step
	for _, c := range append(contender.Semaphores, contender.Pools...) {
		if c.Over == nil {
			continue // Berth's, which has steps of its own
		}
		open := func(p *probe) (contender.Locker, *conn, error) {
			n, err := p.connect()
			if err != nil {
				return nil, nil, err
			}
			l, err := c.Over(n)
			return l, n, err
		}
		steps = append(steps, step{
			name: "peer_" + strings.ReplaceAll(c.Name, "-", "_"), does: c.Name + ": take and give back",
			scripts: float64(2 - len(c.Plain)),
			prepare: calls(open, func(ctx context.Context, l contender.Locker, _ int) error {
				unlock, err := l.Lock(ctx, numbered(0))
				if err != nil {
					return err
				}
				return unlock()
			}),
		})
	}
	return steps
}
