package watch

import (
	"context"
	"errors"
	"net"
	"slices"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
)

// State is how a name stands, in a word or two.
func State(n *berth.Name) string {
	free := n.Capacity - n.Held
	if n.Pool != nil {
		free = n.Pool.Free
	}
	switch {
	case errors.Is(n.Err, berth.ErrIncompatible):
		return "newer form"
	case n.Err != nil:
		return "damaged"
	case n.Pause != nil:
		return "paused"
	case n.Capacity == 0 && n.Kind == keyspace.Pool:
		return "empty"
	case n.Capacity == 0:
		return "gone"
	case n.Kind == keyspace.Sem && free > 0 && heavier(n, free):
		return "too few"
	case free > 0:
		return "free"
	case n.Pool != nil && n.Held == 0 && n.Pool.Resting > 0:
		return "resting"
	case n.Held > n.Capacity:
		return "over"
	case n.Kind == keyspace.Lock:
		return "held"
	}
	return "full"
}

// Silent says whether an error is that of a server that does not answer, or refuses for now.
func Silent(err error) bool {
	var broken net.Error
	var link *net.OpError // also one that has lasted too long
	return errors.Is(err, berth.ErrUnavailable) || errors.As(err, &link) || errors.As(err, &broken) && !errors.Is(err, context.DeadlineExceeded)
}

// heavier says whether the first in line that lives asks for more than is free.
func heavier(n *berth.Name, free int) bool {
	i := slices.IndexFunc(n.First, func(w berth.Waiter) bool { return w.Alive > 0 })
	return i >= 0 && n.First[i].Weight > free
}

// Waits is the one of those first in line that has waited longest, and lives; nil for none.
func Waits(n *berth.Name) (longest *berth.Waiter) {
	for i := range n.First {
		if w := &n.First[i]; w.Alive > 0 && (longest == nil || w.Waited > longest.Waited) {
			longest = w
		}
	}
	return longest
}
