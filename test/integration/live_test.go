package integration

import (
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
)

// live are the holds that somebody in this process believes in. Whoever enters
// looks at all others: a hold whose Err is nil now was valid a moment ago too,
// when the newest was there already, so more of them than the capacity were
// inside at once. No clock of the test is needed for it.
type live struct {
	capacity int

	mu     sync.Mutex
	inside map[berth.Hold]bool // guarded by mu
	most   int                 // guarded by mu: inside at once
	worst  []string            // guarded by mu: who was inside when there were too many
}

func newLive(capacity int) *live {
	return &live{capacity: capacity, inside: map[berth.Hold]bool{}}
}

func (l *live) enter(p berth.Hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inside[p] = true
	var valid []string
	for other := range l.inside {
		if other.Err() == nil {
			valid = append(valid, other.ID())
		} else {
			delete(l.inside, other)
		}
	}
	l.most = max(l.most, len(valid))
	if len(valid) > l.capacity && l.worst == nil {
		l.worst = valid
	}
}

// leave is called when the permit has ended.
func (l *live) leave(p berth.Hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.inside, p)
}

// check fails the test if ever more were inside than the capacity.
func (l *live) check(w *world) {
	w.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	require.Empty(w, l.worst, "%d inside at once on capacity %d", l.most, l.capacity)
}
