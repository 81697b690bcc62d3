package inspect

import (
	"context"
	"slices"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// Config is what a Reader works with. The zero value is valid.
type Config struct {
	// Namespace is the first part of every key. Default "berth".
	Namespace string
	// CallTimeout bounds one attempt of a read. Default 3 s.
	CallTimeout time.Duration
	// Retry bounds how a read is repeated that the server did not answer. Default: see
	// berth.Retry.
	Retry berth.Retry
}

// Reader reads one namespace, for a user that may not write, and on a replica. It is safe for
// concurrent use.
//
// A kind is keyspace.Sem, keyspace.Lock or keyspace.Pool. Where its methods say nothing else, their errors
// are berth.ErrInvalidConfig for a kind, a name, a cursor or a filter that cannot be; berth.ErrIncompatible
// for what a newer release has written; one that says "damaged" for what Berth has not; or the server's.
type Reader struct {
	read      *reader.Reader
	run       *scriptkit.Runner
	redis     rueidis.Client
	namespace string
}

// New returns a Reader on a rueidis client, which stays the caller's. To read from a replica give it a client
// of the replica's address, or, with Sentinels, one with ReplicaOnly; a Cluster is read from its primaries.
// New does no I/O and starts nothing: there is nothing to close. Its errors are *berth.ConfigError.
func New(redis rueidis.Client, cfg Config) (*Reader, error) {
	if redis == nil {
		return nil, berth.Invalid("redis", "must not be nil")
	}
	common := settings.Common{Namespace: cfg.Namespace, CallTimeout: cfg.CallTimeout, Retry: cfg.Retry}.WithDefaults()
	if err := common.Validate(); err != nil {
		return nil, err
	}
	space, err := keyspace.New(common.Namespace)
	if err != nil {
		return nil, err
	}
	run := scriptkit.NewRunner(redis, scriptkit.Options{Retry: common.Retry, CallTimeout: common.CallTimeout})
	return &Reader{reader.New(run, space, false), run, redis, common.Namespace}, nil
}

// kindsOf are those that a Reader reads, in the order of its listings.
var kindsOf = []keyspace.Kind{keyspace.Sem, keyspace.Lock, keyspace.Pool}

func checkKind(kind keyspace.Kind) error {
	if !slices.Contains(kindsOf, kind) {
		return berth.Invalid("kind", "%q is none of sem, lock and pool", string(kind))
	}
	return nil
}

// Page is a part of a listing.
type Page[E any] struct {
	Items []E `json:"items"`
	// Next is the cursor of the next page, "" after the last, and always of an Overview. No other release understands it.
	Next string `json:"next,omitzero"`
	// Partial says that the page has fewer than were asked for because it took long, or because much had
	// to be read for it.
	Partial bool `json:"partial"`
	// Stuck is how many names are, of an Overview also those that Items has no room for. Unread is how many more an Overview
	// knows that it has not looked at. Both are 0 of a page of claims.
	Stuck  int `json:"stuck,omitzero"`
	Unread int `json:"unread,omitzero"`
	// At is when it was read, by the clock of a server that answered. Replica says that a replica did: all is
	// as of that replica, and by its clock.
	At      time.Time `json:"at"`
	Replica bool      `json:"replica"`
	// Moving says that claims moved while it was read: one may be missing, or there twice.
	Moving bool `json:"moving"`
	// Problems are of claims that are damaged, of which Items have the ID alone, and of servers that are
	// left out.
	Problems []error `json:"problems,omitzero"`
}

// Holders reads up to most holds of a name (0: 100, at most 1000) behind a cursor, "" for the first: those that end
// first; of a lock its entries, the outermost first, on one page. Above 1000 a hold whose deadline comes
// nearer while pages are read may be missed, and one that is renewed may be there twice.
func (r *Reader) Holders(ctx context.Context, kind keyspace.Kind, name, from string, most int) (Page[berth.Holder], error) {
	return pageOf(kind, most, func(most int) (reader.Page[berth.Holder], error) {
		return r.read.HoldersPage(ctx, kind, name, from, most)
	})
}

// Waiters reads up to most claims that wait (0: 100, at most 1000) behind a cursor, "" for the first: in the order of the
// line, and then those who wait for one resource of a pool. A claim that waits from the first page to the last is
// there, once.
func (r *Reader) Waiters(ctx context.Context, kind keyspace.Kind, name, from string, most int) (Page[berth.Waiter], error) {
	return pageOf(kind, most, func(most int) (reader.Page[berth.Waiter], error) {
		return r.read.WaitersPage(ctx, kind, name, from, most)
	})
}

// bounded is how many entries a page has.
func bounded(most int) (int, error) {
	switch {
	case most < 0:
		return 0, berth.Invalid("most", "%d is negative", most)
	case most == 0:
		return 100, nil
	}
	return min(most, reader.Most), nil
}

func pageOf[E any](kind keyspace.Kind, most int, read func(most int) (reader.Page[E], error)) (page Page[E], err error) {
	if err := checkKind(kind); err != nil {
		return page, err
	}
	if most, err = bounded(most); err != nil {
		return page, err
	}
	found, err := read(most)
	if err != nil {
		return page, err
	}
	page = Page[E]{Next: found.Next, At: found.Now, Replica: found.Replica, Moving: found.Moving}
	for _, e := range found.Found {
		page.Items = append(page.Items, e.Entry)
		if e.Err != nil {
			page.Problems = append(page.Problems, e.Err)
		}
	}
	return page, nil
}
