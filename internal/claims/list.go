package claims

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

// Holders goes through the holds of a name, in no order. It promises what SCAN
// promises: what is held from beginning to end is there, once. It ends after an
// error: berth.ErrIncompatible or the server's.
func (s *Calls) Holders(ctx context.Context, name string) iter.Seq2[berth.Holder, error] {
	return func(yield func(berth.Holder, error) bool) {
		seen := make(map[string]bool)
		cursor := "0"
		for {
			page, next, err := s.holdersPage(ctx, name, cursor)
			if err != nil {
				yield(berth.Holder{}, err)
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
func (s *Calls) Waiters(ctx context.Context, name string) iter.Seq2[berth.Waiter, error] {
	return func(yield func(berth.Waiter, error) bool) {
		seen := make(map[string]bool)
		from, ahead := int64(0), 0
		for {
			page, err := s.waitersPage(ctx, name, from)
			if err != nil {
				yield(berth.Waiter{}, err)
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

// holdersPage sends claim_holders.
func (s *Calls) holdersPage(ctx context.Context, name, cursor string) (page []berth.Holder, next string, err error) {
	r, err := s.Run(ctx, s.holders, scriptkit.Bounded, name, cursor, strconv.Itoa(pageSize))
	if err != nil {
		return nil, "", err
	}
	if r.Status() != statusPage {
		return nil, "", Unexpected(name, &r)
	}
	next = r.Str(1)
	now := time.UnixMilli(r.Int(2))
	for i := 3; i < r.Len(); i += 4 {
		h, err := Holder(r.Str(i), now, r.Int(i+1), r.Str(i+2))
		if err != nil {
			return nil, "", err
		}
		h.Resource = r.Str(i + 3)
		page = append(page, h)
	}
	return page, next, r.Err()
}

// Holder reads what the server tells of a hold: its claim's id, the milliseconds
// left (-1 = no end) and the record.
func Holder(id string, now time.Time, left int64, text string) (berth.Holder, error) {
	record, err := engine.ParseRecord(text)
	if err != nil {
		return berth.Holder{}, err
	}
	h := berth.Holder{
		ID: id, Node: record.Node, Label: record.Label, Owner: record.Owner, Weight: record.Weight,
		Fence: record.Fence, Lease: record.Lease, Left: Left(left), NoRenew: record.NoRenew,
		MaxHold: record.MaxHold, Granted: record.Granted, Held: now.Sub(record.Granted),
		Detached: record.Phase == 'd', Meta: record.Meta,
	}
	if h.Left < 0 {
		h.Left = berth.Forever
	}
	return h, nil
}

// waiterPage is what one claim_waiters has read.
type waiterPage struct {
	waiters []berth.Waiter
	read    int   // how many entries, dead ones included
	last    int64 // the place of the last of them
}

// waitersPage sends claim_waiters.
func (s *Calls) waitersPage(ctx context.Context, name string, from int64) (page waiterPage, err error) {
	r, err := s.Run(ctx, s.waiters, scriptkit.Bounded, name, Decimal(from), strconv.Itoa(pageSize))
	if err != nil {
		return page, err
	}
	if r.Status() != statusPage {
		return page, Unexpected(name, &r)
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
		page.waiters = append(page.waiters, berth.Waiter{
			ID: r.Str(i), Node: record.Node, Label: record.Label, Owner: record.Owner, Weight: record.Weight,
			Priority: record.Priority, Since: since, Waited: now.Sub(since), Alive: Millis(r.Int(i + 2)), Meta: record.Meta,
		})
	}
	return page, r.Err()
}
