package berthhttp

import "sync"

// line counts the requests of this process that are without a permit yet.
type line struct {
	mu      sync.Mutex
	waiting map[string]int // guarded by mu: by the semaphore's name, without zeros
}

// enter counts one more of a name, unless there are most of them already: then it returns
// how many there are.
func (l *line) enter(name string, most int) (waiting int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting[name] >= most {
		return l.waiting[name]
	}
	l.waiting[name]++
	return 0
}

// leave counts one less of a name.
func (l *line) leave(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting[name]--; l.waiting[name] == 0 {
		delete(l.waiting, name)
	}
}
