package watch

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/berth-go/berth/pkg/inspect"
)

// askedMost is how many claims one reading of a name asks for.
const askedMost = 10

// asked is a claim of a name. Like a topic it is read for a while when nobody looks any more.
type asked struct {
	looking int
	left    time.Time           // when the last one has gone
	last    *inspect.AskedClaim // as it was read last, nil: never
	turn    int                 // of that reading
}

// claims are those that the next reading of a name asks for: of which nothing was read yet, or the longest ago.
func (w *Watcher) claims(key string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.topics[key]
	if t == nil {
		return nil
	}
	maps.DeleteFunc(t.claims, func(_ string, a *asked) bool { return a.looking == 0 && time.Since(a.left) >= unlooked })
	all := slices.SortedFunc(maps.Keys(t.claims), func(a, b string) int {
		return cmp.Or(cmp.Compare(t.claims[a].turn, t.claims[b].turn), cmp.Compare(a, b))
	})
	return all[:min(len(all), askedMost)]
}

// recall notes what a reading of a name tells of claims, and adds the others as they were read last.
func (w *Watcher) recall(key string, asked map[string]inspect.AskedClaim) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.topics[key]
	if t == nil {
		return
	}
	for claim, a := range t.claims {
		if now, read := asked[claim]; read {
			a.last, a.turn = &now, t.turn
		} else if a.last != nil {
			asked[claim] = *a.last
		}
	}
}
