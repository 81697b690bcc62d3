package semaphore

import (
	"context"
	"iter"

	"github.com/berth-go/berth"
)

// Holder is a permit that somebody holds.

// Waiter is a claim that waits in line.

// Holders goes through the permits that are held, in no order. It promises what
// SCAN promises: a permit that is held from beginning to end is there, once. An
// error that names a claim says that what is stored of it is damaged; the listing
// goes on. It ends after any other error: berth.ErrIncompatible or the server's.
func (s *Semaphore) Holders(ctx context.Context) iter.Seq2[berth.Holder, error] {
	return s.client.node.Holders(ctx, s.name)
}

// Waiters goes through the claims that wait, the first in line first. A claim
// that waits from beginning to end is there, once; what comes and goes meanwhile
// may be there or not. It goes on after a damaged claim, as Holders does, and ends
// after any other error: berth.ErrIncompatible or the server's.
func (s *Semaphore) Waiters(ctx context.Context) iter.Seq2[berth.Waiter, error] {
	return s.client.node.Waiters(ctx, s.name)
}
