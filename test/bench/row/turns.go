package row

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/berth-go/berth/test/bench/contender"
)

// turn is one worker's wait for the lock, and what came of it. Times are those of the wall
// clock in ns, so that those of several processes can be put in one order.
type turn struct {
	Asked int64 // when Lock was called
	Got   int64 // when Lock returned, with the lock or without it
	Held  int64 // how long it was held until unlock was called, ns
	Lost  bool  // the end of the run came first
}

// takeTurns locks, holds and unlocks until ctx ends.
func takeTurns(ctx context.Context, locker contender.Locker, name string, hold time.Duration) ([]turn, error) {
	var turns []turn
	for {
		t := turn{Asked: time.Now().UnixNano()}
		unlock, err := locker.Lock(ctx, name)
		t.Got = time.Now().UnixNano()
		switch {
		case err == nil:
		case ctx.Err() != nil:
			t.Lost = true
			return append(turns, t), nil
		default:
			return nil, fmt.Errorf("lock: %w", err)
		}
		if hold > 0 {
			if err := pause(context.WithoutCancel(ctx), hold); err != nil {
				return nil, err
			}
		}
		t.Held = time.Now().UnixNano() - t.Got
		turns = append(turns, t)
		if err := unlock(); err != nil && ctx.Err() == nil {
			return nil, fmt.Errorf("unlock: %w", err)
		}
		if ctx.Err() != nil {
			return turns, nil
		}
	}
}

// tally is what became of several workers' turns within a span of time.
type tally struct {
	locks    int             // locks taken
	handoffs int             // of them, those by another worker than the one before
	waits    []time.Duration // as far as they lie within the span, unended ones included
	longest  []time.Duration // by worker
	holds    []time.Duration
	shares   []int // locks by worker
}

func tallyTurns(byWorker [][]turn, from, until time.Time) tally {
	type grant struct {
		at     int64
		worker int
	}
	first, last := from.UnixNano(), until.UnixNano()
	result := tally{shares: make([]int, len(byWorker)), longest: make([]time.Duration, len(byWorker))}
	var grants []grant
	for worker, turns := range byWorker {
		for _, t := range turns {
			if t.Asked >= last || t.Got < first {
				continue
			}
			waited := time.Duration(min(t.Got, last) - max(t.Asked, first))
			result.waits = append(result.waits, waited)
			result.longest[worker] = max(result.longest[worker], waited)
			if t.Lost || t.Got >= last {
				continue
			}
			grants = append(grants, grant{at: t.Got, worker: worker})
			result.holds = append(result.holds, time.Duration(t.Held))
			result.shares[worker]++
		}
	}
	slices.SortFunc(grants, func(a, b grant) int { return cmp.Compare(a.at, b.at) })
	result.locks = len(grants)
	for i := range grants {
		if i == 0 || grants[i].worker != grants[i-1].worker {
			result.handoffs++
		}
	}
	return result
}
