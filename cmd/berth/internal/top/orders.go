package top

import (
	"cmp"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/view"
)

// orders are how the list may be sorted.
var orders = []struct {
	name    string
	compare func(a, b berth.Name) int
}{
	{"most waiting", func(a, b berth.Name) int {
		return cmp.Or(cmp.Compare(b.Waiting, a.Waiting), cmp.Compare(waited(b), waited(a)), byName(a, b))
	}},
	{"longest wait", func(a, b berth.Name) int { return cmp.Or(cmp.Compare(waited(b), waited(a)), byName(a, b)) }},
	{"longest hold", func(a, b berth.Name) int { return cmp.Or(cmp.Compare(b.Oldest, a.Oldest), byName(a, b)) }},
	{"name", byName},
}

func byName(a, b berth.Name) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
}

// waited is how long the first ones in line have waited at most.
func waited(n berth.Name) time.Duration {
	if w := view.Waits(&n); w != nil {
		return w.Waited
	}
	return 0
}
