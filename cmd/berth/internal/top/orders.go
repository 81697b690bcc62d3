package top

import (
	"cmp"
	"time"

	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

// orders are how the list may be sorted.
var orders = []struct {
	name    string
	compare func(a, b inspect.Name) int
}{
	{"most waiting", func(a, b inspect.Name) int {
		return cmp.Or(cmp.Compare(b.Waiting, a.Waiting), cmp.Compare(waited(b), waited(a)), byName(a, b))
	}},
	{"longest wait", func(a, b inspect.Name) int { return cmp.Or(cmp.Compare(waited(b), waited(a)), byName(a, b)) }},
	{"longest hold", func(a, b inspect.Name) int { return cmp.Or(cmp.Compare(b.Oldest, a.Oldest), byName(a, b)) }},
	{"name", byName},
}

func byName(a, b inspect.Name) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
}

// waited is how long the first ones in line have waited at most.
func waited(n inspect.Name) (longest time.Duration) {
	for _, w := range n.First {
		if w.Alive > 0 {
			longest = max(longest, w.Waited)
		}
	}
	return longest
}

// state is how a name stands, in a word.
func state(n inspect.Name) string {
	free := n.Capacity - n.Held
	if n.Pool != nil {
		free = n.Pool.Free
	}
	switch {
	case n.Err != nil:
		return "unread"
	case n.Pause != nil:
		return "paused"
	case n.Capacity == 0 && n.Kind == keyspace.Pool:
		return "empty"
	case n.Capacity == 0:
		return "gone"
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
