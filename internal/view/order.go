package view

import (
	"cmp"
	"slices"
	"strings"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

// Order is how rows may be sorted.
type Order[T any] struct {
	Name    string // as a flag has it
	Says    string
	compare func(a, b *T) int
}

// Orders are the orders of names. Names that are alike in one stand by name.
var Orders = ordered(func(a, b *berth.Name) int {
	return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
}, []Order[berth.Name]{
	{"state", "the worst first", func(a, b *berth.Name) int {
		return cmp.Or(a.Trouble.Level.Compare(b.Trouble.Level), cmp.Compare(b.Live(), a.Live()), cmp.Compare(Waited(b), Waited(a)))
	}},
	{"name", "by name", func(*berth.Name, *berth.Name) int { return 0 }},
	{"held", "most held first", func(a, b *berth.Name) int {
		return cmp.Or(cmp.Compare(held(b), held(a)), cmp.Compare(b.Oldest, a.Oldest))
	}},
	{"share", "largest share first", func(a, b *berth.Name) int { return cmp.Compare(b.Share(), a.Share()) }},
	{"waiting", "most waiting first", func(a, b *berth.Name) int {
		return cmp.Or(cmp.Compare(b.Live(), a.Live()), cmp.Compare(Waited(b), Waited(a)))
	}},
	{"wait", "longest wait first", func(a, b *berth.Name) int { return cmp.Compare(Waited(b), Waited(a)) }},
	{"hold", "longest hold first", func(a, b *berth.Name) int { return cmp.Compare(b.Oldest, a.Oldest) }},
})

// held is how much of a name is held: weights of a semaphore, sharers of a pool. A lock, also one with several entries, is held once.
func held(n *berth.Name) int {
	if n.Kind == keyspace.Lock {
		return n.Held
	}
	return max(n.Held, n.Holders)
}

// ClaimOrders are the orders of claims. Of claims that are alike in one the oldest is the first.
var ClaimOrders = ordered(func(a, b *inspect.Claim) int { return Oldest(*a, *b) }, []Order[inspect.Claim]{
	{"for", "the longest first", func(*inspect.Claim, *inspect.Claim) int { return 0 }},
	{"left", "the first to end first", func(a, b *inspect.Claim) int { return cmp.Compare(a.Left(), b.Left()) }},
	{"name", "by name", func(a, b *inspect.Claim) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind)) }},
	{"state", "the worst first", func(a, b *inspect.Claim) int {
		return cmp.Compare(suspicion(b), suspicion(a))
	}},
})

func suspicion(of *inspect.Claim) int {
	if c := (Claim{Claim: *of}); c.Suspicious() {
		return 1
	}
	return 0
}

// ordered are orders that end with the same comparison.
func ordered[T any](last func(a, b *T) int, all []Order[T]) []Order[T] {
	for i, o := range all {
		all[i].compare = func(a, b *T) int { return cmp.Or(o.compare(a, b), last(a, b)) }
	}
	return all
}

// Sort sorts rows.
func (o Order[T]) Sort(all []T) {
	slices.SortStableFunc(all, func(a, b T) int { return o.compare(&a, &b) })
}
