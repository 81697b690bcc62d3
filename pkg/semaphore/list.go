package semaphore

import (
	"context"
	"iter"
	"strconv"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// pageSize is about how many entries one script of a listing reads.
const pageSize = 100

// Holder is a permit that somebody holds.
type Holder = berth.Holder

// Waiter is a claim that waits in line.
type Waiter = berth.Waiter

// Holders goes through the permits that are held, in no order. It promises what
// SCAN promises: a permit that is held from beginning to end is there, once. It
// ends after an error: berth.ErrIncompatible or the server's.
func (s *Semaphore) Holders(ctx context.Context) iter.Seq2[Holder, error] {
	return func(yield func(Holder, error) bool) {
		seen := make(map[string]bool)
		cursor := "0"
		for {
			page, next, err := s.client.calls.holdersPage(ctx, s.name, cursor)
			if err != nil {
				yield(Holder{}, err)
				return
			}
			for _, h := range page {
				if !seen[h.ID] && !yield(h, nil) {
					return
				}
				seen[h.ID] = true
			}
			if cursor = next; cursor == "0" {
				return
			}
		}
	}
}

// Waiters goes through the claims that wait, the first in line first. A claim
// that waits from beginning to end is there, once; what comes and goes meanwhile
// may be there or not. It ends after an error: berth.ErrIncompatible or the
// server's.
func (s *Semaphore) Waiters(ctx context.Context) iter.Seq2[Waiter, error] {
	return func(yield func(Waiter, error) bool) {
		seen := make(map[string]bool)
		from, ahead := int64(0), 0
		for {
			page, err := s.client.calls.waitersPage(ctx, s.name, from)
			if err != nil {
				yield(Waiter{}, err)
				return
			}
			for _, w := range page.waiters {
				if seen[w.ID] {
					continue
				}
				seen[w.ID] = true
				w.Ahead = ahead
				ahead++
				if !yield(w, nil) {
					return
				}
			}
			if page.read < pageSize {
				return
			}
			if page.last == from {
				page.last++ // a whole page of one place: it cannot be larger
			}
			from = page.last
		}
	}
}

// holdersPage sends semaphore_holders.
func (s *calls) holdersPage(ctx context.Context, name, cursor string) (page []Holder, next string, err error) {
	r, err := s.run.Run(ctx, s.holders, scriptkit.Bounded, s.keys(name), []string{cursor, strconv.Itoa(pageSize)})
	if err != nil {
		return nil, "", err
	}
	if r.Status() != statusPage {
		return nil, "", unexpected(name, &r)
	}
	next = r.Str(1)
	now := time.UnixMilli(r.Int(2))
	for i := 3; i < r.Len(); i += 3 {
		record, err := engine.ParseRecord(r.Str(i + 2))
		if err != nil {
			return nil, "", err
		}
		h := Holder{
			ID: r.Str(i), Node: record.Node, Label: record.Label, Owner: record.Owner, Weight: record.Weight,
			Fence: record.Fence, Lease: record.Lease, Left: left(r.Int(i + 1)), NoRenew: record.NoRenew,
			MaxHold: record.MaxHold, Granted: record.Granted, Held: now.Sub(record.Granted),
			Detached: record.Phase == 'd', Meta: record.Meta,
		}
		if h.Left < 0 {
			h.Left = berth.Forever
		}
		page = append(page, h)
	}
	return page, next, r.Err()
}

// waiterPage is what one semaphore_waiters has read.
type waiterPage struct {
	waiters []Waiter
	read    int   // how many entries, dead ones included
	last    int64 // the place of the last of them
}

// waitersPage sends semaphore_waiters.
func (s *calls) waitersPage(ctx context.Context, name string, from int64) (page waiterPage, err error) {
	r, err := s.run.Run(ctx, s.waiters, scriptkit.Bounded, s.keys(name), []string{
		strconv.FormatInt(from, 10), strconv.Itoa(pageSize),
	})
	if err != nil {
		return page, err
	}
	if r.Status() != statusPage {
		return page, unexpected(name, &r)
	}
	now := time.UnixMilli(r.Int(1))
	for i := 2; i < r.Len(); i += 4 {
		page.read++
		page.last = r.Int(i + 1)
		text := r.Str(i + 3)
		if text == "" {
			continue // dead, and not yet swept
		}
		record, err := engine.ParseRecord(text)
		if err != nil {
			return page, err
		}
		since := time.UnixMilli(record.Ticket)
		page.waiters = append(page.waiters, Waiter{
			ID: r.Str(i), Node: record.Node, Label: record.Label, Owner: record.Owner, Weight: record.Weight,
			Priority: record.Priority, Since: since, Waited: now.Sub(since), Alive: ms(r.Int(i + 2)), Meta: record.Meta,
		})
	}
	return page, r.Err()
}
