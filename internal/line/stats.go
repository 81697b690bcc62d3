package line

import (
	"context"
	"iter"
	"slices"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
)

// Listing reads what a client's names look like, one by one.
type Listing[S any] struct {
	// All are the names that there are.
	All iter.Seq2[string, error]
	// Named is what is told of a name that cannot be one, beside the error.
	Named func(name string) S
	// Read reads one.
	Read func(ctx context.Context, name string) (S, error)
	// Used says whether a name that nobody asked for is worth telling of.
	Used func(S) bool
	// Share is how full it is, for Top.
	Share func(S) float64
}

// Stats goes through the names given or, without any, through all that are in use.
// After an error it goes on where it can.
func (l Listing[S]) Stats(ctx context.Context, names ...string) iter.Seq2[S, error] {
	return func(yield func(S, error) bool) {
		if len(names) == 0 {
			l.used(ctx, yield)
			return
		}
		for _, name := range names {
			stats, err := l.Named(name), keyspace.CheckName(name)
			if err == nil {
				stats, err = l.Read(ctx, name)
			}
			if !yield(stats, err) {
				return
			}
		}
	}
}

func (l Listing[S]) used(ctx context.Context, yield func(S, error) bool) {
	for name, err := range l.All {
		var stats S
		if err == nil {
			stats, err = l.Read(ctx, name)
		}
		if err == nil && !l.Used(stats) {
			continue
		}
		if !yield(stats, err) {
			return
		}
	}
}

// Top returns the n names in use with the largest share, the largest first.
func (l Listing[S]) Top(ctx context.Context, n int) ([]S, error) {
	if n < 1 {
		return nil, berth.Invalid("n", "%d is below 1", n)
	}
	var top []S
	for stats, err := range l.Stats(ctx) {
		if err != nil {
			return nil, err
		}
		at, _ := slices.BinarySearchFunc(top, stats, func(a, b S) int {
			switch {
			case l.Share(a) > l.Share(b):
				return -1
			case l.Share(a) < l.Share(b):
				return 1
			}
			return 0
		})
		if at < n {
			top = slices.Insert(top, at, stats)
			top = top[:min(len(top), n)]
		}
	}
	return top, nil
}
