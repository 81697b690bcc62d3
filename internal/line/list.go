package line

import (
	"context"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// pageSize is about how many entries one script of a listing reads.
const pageSize = 100

// Holders goes through the holds of a name, in no order. It promises what SCAN
// promises: what is held from beginning to end is there, once. It goes on after a
// claim that is damaged, and ends after any other error:
// berth.ErrInvalidConfig for a bad name, berth.ErrIncompatible, or the server's.
func (s *Calls) Holders(ctx context.Context, name string) iter.Seq2[berth.Holder, error] {
	return func(yield func(berth.Holder, error) bool) {
		if err := keyspace.CheckName(name); err != nil {
			yield(berth.Holder{}, err)
			return
		}
		seen := make(map[string]bool)
		cursor := "0"
		for {
			page, next, err := s.holdersPage(ctx, name, cursor)
			if err != nil {
				yield(berth.Holder{}, err)
				return
			}
			for _, h := range page {
				if !seen[h.ID] && !yield(h.Holder, h.err) {
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
// may be there or not. It goes on after a claim that is damaged, and ends after any
// other error: berth.ErrIncompatible or the server's.
func (s *Calls) Waiters(ctx context.Context, name string) iter.Seq2[berth.Waiter, error] {
	return func(yield func(berth.Waiter, error) bool) {
		if err := keyspace.CheckName(name); err != nil {
			yield(berth.Waiter{}, err)
			return
		}
		seen := make(map[string]bool)
		var after foundWaiter
		resource := ""
		for ahead := 0; ; {
			page, err := s.waitersPage(ctx, name, after)
			if err != nil {
				yield(berth.Waiter{}, err)
				return
			}
			for _, w := range page.waiters {
				if seen[w.ID] {
					continue
				}
				seen[w.ID] = true
				if w.Resource != resource {
					ahead, resource = 0, w.Resource // of a lane of its own
				}
				w.Ahead = ahead
				ahead++
				if !yield(w.Waiter, w.err) {
					return
				}
			}
			if page.read < pageSize {
				return
			}
			after = page.last
		}
	}
}

// foundHolder is a holder of a page; of one that is damaged only its ID is known.
type foundHolder struct {
	berth.Holder
	err error
}

// holdersPage runs claim_holders.
func (s *Calls) holdersPage(ctx context.Context, name, cursor string) (page []foundHolder, next string, err error) {
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
		h, err := Holder(name, r.Str(i), now, r.Int(i+1), r.Str(i+2))
		h.Resource = r.Str(i + 3)
		page = append(page, foundHolder{h, err})
	}
	return page, next, r.Err()
}

// Holder reads what the server tells of a hold: its claim's id, the milliseconds
// left (-1 = no end) and the record. The error is state.ErrDamaged.
func Holder(name, id string, now time.Time, left int64, text string) (berth.Holder, error) {
	record, err := state.ReadRecord(name, id, text)
	if err != nil {
		return berth.Holder{ID: id}, err
	}
	h := berth.Holder{
		ID: id, Node: record.Node, Label: record.Label, Owner: record.Owner, Weight: record.Weight,
		Fence: record.Fence, Lease: record.Lease, Left: Left(left), NoRenew: record.NoRenew,
		MaxHold: record.MaxHold, Granted: record.Granted, Held: now.Sub(record.Granted),
		Wanted: record.WantedFor(now), Detached: record.Phase == 'd', ZombieAfter: record.ZombieAfter, Meta: record.Meta,
	}
	if h.Left < 0 {
		h.Left = berth.Forever
	}
	return h, nil
}

// bindWait is how long a claim waits for one resource alone, as scripts/pool/lane.lua keeps its end.
func bindWait(ends string, now time.Time) time.Duration {
	switch ms, err := strconv.ParseInt(ends, 10, 64); {
	case ends == "":
		return 0
	case err != nil || ms == 0:
		return berth.Forever
	default:
		return max(time.UnixMilli(ms).Sub(now), 0)
	}
}

// waiterPage is what one claim_waiters has read.
type waiterPage struct {
	waiters []foundWaiter
	read    int         // how many entries, dead ones included
	last    foundWaiter // the last of them
}

// foundWaiter is a waiter of a page; of one that is damaged only its ID is known.
type foundWaiter struct {
	berth.Waiter
	place string
	err   error
}

// waitersPage runs claim_waiters.
func (s *Calls) waitersPage(ctx context.Context, name string, after foundWaiter) (page waiterPage, err error) {
	r, err := s.Run(ctx, s.waiters, scriptkit.Bounded, name, after.place, after.ID, strconv.Itoa(pageSize))
	if err != nil {
		return page, err
	}
	if r.Status() != statusPage {
		return page, Unexpected(name, &r)
	}
	now := time.UnixMilli(r.Int(1))
	for i := 2; i < r.Len(); i += 5 {
		page.read++
		page.last = foundWaiter{Waiter: berth.Waiter{ID: r.Str(i)}, place: r.Str(i + 1)}
		text := r.Str(i + 3)
		if text == "" {
			continue // dead, and not yet swept
		}
		record, err := state.ReadRecord(name, r.Str(i), text)
		ends, resource, _ := strings.Cut(r.Str(i+4), " ")
		since := time.UnixMilli(record.Ticket)
		page.waiters = append(page.waiters, foundWaiter{Waiter: berth.Waiter{
			ID: r.Str(i), Node: record.Node, Label: record.Label, Owner: record.Owner, Weight: record.Weight,
			Priority: record.Priority, Since: since, Waited: now.Sub(since), Alive: state.Millis(r.Int(i + 2)), Meta: record.Meta,
			Resource: resource, BindWait: bindWait(ends, now),
		}, err: err})
	}
	return page, r.Err()
}
