package watch

import (
	"maps"
	"slices"
	"time"
)

// asked is a claim of a name. Like a topic it is read for a while when nobody looks any more.
type asked struct {
	looking int
	left    time.Time // when the last one has gone
}

// join has the topic of a name read a claim.
func (t *topic) join(claim string) {
	if t.claims == nil {
		t.claims = map[string]*asked{}
	}
	if t.claims[claim] == nil {
		t.claims[claim] = &asked{}
	}
	t.claims[claim].looking++
}

// leave ends the looking at a claim, "" for none.
func (t *topic) leave(claim string) {
	if a := t.claims[claim]; a != nil {
		a.looking--
		a.left = time.Now()
	}
}

// claims are those that the next reading of a name tells of.
func (w *Watcher) claims(key string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.topics[key]
	if t == nil {
		return nil
	}
	maps.DeleteFunc(t.claims, func(_ string, a *asked) bool { return a.looking == 0 && time.Since(a.left) >= unlooked })
	return slices.Sorted(maps.Keys(t.claims))
}
