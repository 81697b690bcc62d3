package swarm

import (
	"context"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/pkg/keyspace"
)

// fakeLine is a Line in memory.
type fakeLine struct {
	mu       sync.Mutex
	names    []string
	holders  map[string][]berth.Holder
	waiters  map[string][]berth.Waiter
	broken   map[string]error // what a name answers with
	released []string         // name/claim, in order
	unknown  map[string]bool  // what the asking node does not know, by claim
	parting  func()           // runs when that was asked
	passes   int              // how often the names were asked for
}

func newLine() *fakeLine {
	return &fakeLine{
		holders: make(map[string][]berth.Holder), waiters: make(map[string][]berth.Waiter), broken: make(map[string]error),
	}
}

// ref is a lock, or what the word before a colon says.
func ref(name string) reader.Ref {
	if kind, name, ok := strings.Cut(name, ":"); ok {
		return reader.Ref{Kind: keyspace.Kind(kind), Name: name}
	}
	return reader.Ref{Kind: keyspace.Lock, Name: name}
}

// key is what ref was made of.
func key(of reader.Ref) string {
	if of.Kind == keyspace.Lock {
		return of.Name
	}
	return string(of.Kind) + ":" + of.Name
}

func (l *fakeLine) name(name string) {
	if !slices.Contains(l.names, name) {
		l.names = append(l.names, name)
	}
}

func (l *fakeLine) hold(name, claim, node string, detached bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.name(name)
	l.holders[name] = append(l.holders[name], berth.Holder{ID: claim, Node: node, Owner: "owner of " + claim, Detached: detached})
}

// endless is hold for a claim without end of a node that is in a swarm.
func (l *fakeLine) endless(name, claim, node string, limit time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.name(name)
	l.holders[name] = append(l.holders[name], berth.Holder{ID: claim, Node: node, Label: "label of " + node, ZombieAfter: limit})
}

// detach has all holds of a name detached.
func (l *fakeLine) detach(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.holders[name] {
		l.holders[name][i].Detached = true
	}
}

func (l *fakeLine) wait(name, claim, node string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.name(name)
	l.waiters[name] = append(l.waiters[name], berth.Waiter{ID: claim, Node: node})
}

// fail makes a name, one claim of it ("name/claim"), or all of the names ("*") fail,
// or work again.
func (l *fakeLine) fail(what string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		delete(l.broken, what)
		return
	}
	l.broken[what] = err
}

func (l *fakeLine) ended() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.released)
}

func (l *fakeLine) passed() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.passes
}

func (l *fakeLine) Names(context.Context) iter.Seq2[reader.Ref, error] {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.passes++
	var names []reader.Ref
	for _, name := range l.names {
		names = append(names, ref(name))
	}
	return each(names, l.broken["*"])
}

func (l *fakeLine) Holders(_ context.Context, of reader.Ref) iter.Seq2[berth.Holder, error] {
	name := key(of)
	l.mu.Lock()
	defer l.mu.Unlock()
	return each(slices.Clone(l.holders[name]), nil)
}

func (l *fakeLine) Waiters(_ context.Context, of reader.Ref) iter.Seq2[berth.Waiter, error] {
	name := key(of)
	l.mu.Lock()
	defer l.mu.Unlock()
	return each(slices.Clone(l.waiters[name]), l.broken[name])
}

// Unknown says what a test says.
func (l *fakeLine) Unknown(claim string) bool {
	l.mu.Lock()
	unknown, then := l.unknown[claim], l.parting
	l.mu.Unlock()
	if then != nil {
		then()
	}
	return unknown
}

// ForceRelease hands what is freed to the first waiter.
func (l *fakeLine) ForceRelease(_ context.Context, of reader.Ref, claim, node string) error {
	name := key(of)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.broken[name+"/"+claim]; err != nil {
		return err
	}
	waiters, holders := len(l.waiters[name]), len(l.holders[name])
	l.waiters[name] = slices.DeleteFunc(l.waiters[name], func(w berth.Waiter) bool { return w.ID == claim && w.Node == node })
	l.holders[name] = slices.DeleteFunc(l.holders[name], func(h berth.Holder) bool { return h.ID == claim && h.Node == node })
	if len(l.waiters[name]) == waiters && len(l.holders[name]) == holders {
		return berth.ErrNotHeld
	}
	l.released = append(l.released, name+"/"+claim)
	if len(l.holders[name]) == 0 && len(l.waiters[name]) > 0 {
		first := l.waiters[name][0]
		l.waiters[name] = l.waiters[name][1:]
		l.holders[name] = append(l.holders[name], berth.Holder{ID: first.ID, Node: first.Node})
	}
	return nil
}

func each[T any](all []T, err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, one := range all {
			if !yield(one, nil) {
				return
			}
		}
		if err != nil {
			var zero T
			yield(zero, err)
		}
	}
}
