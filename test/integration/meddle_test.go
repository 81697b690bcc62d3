package integration

import (
	"context"
	"slices"
	"sync"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/scripts/composed"
)

// fate is what a meddler does to one call.
type fate int

const (
	passed   fate = iota
	unheard       // it runs, and its answer is lost
	deferred      // it runs only when the test says so, and nobody hears the answer
)

// meddler is a connection that loses and delays chosen calls, as a network does
// by chance.
type meddler struct {
	rueidis.Client

	mu   sync.Mutex
	plan map[string][]fate // guarded by mu: by script, for its next calls
	rule map[string]fate   // guarded by mu: by script, for those after
	late []func()          // guarded by mu: the calls that are deferred
	met  map[string]int    // guarded by mu: how many calls had a fate other than passed
	runs map[string]int    // guarded by mu: how many calls went through as they were
}

// meddler returns a connection to the world's server. The server knows all scripts
// by then, so that a call is one command.
func (w *world) meddler() *meddler {
	w.Helper()
	w.load()
	return &meddler{Client: w.server.Client(w.T), plan: map[string][]fate{}, rule: map[string]fate{}, met: map[string]int{}, runs: map[string]int{}}
}

var library = composed.Library()

// names are the scripts' names by what EVALSHA and EVAL call them.
var names = func() map[string]string {
	all := map[string]string{}
	for _, s := range library.Scripts() {
		all[s.SHA], all[s.Source()] = s.Name, s.Name
	}
	return all
}()

// isScript says whether a command runs a script.
func isScript(words []string) bool {
	return len(words) > 2 && (words[0] == "EVALSHA" || words[0] == "EVAL")
}

// locked does something with what mu guards.
func (m *meddler) locked(do func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	do()
}

// next says what the next calls of a script will meet.
func (m *meddler) next(script string, fates ...fate) {
	m.locked(func() { m.plan[script] = append(m.plan[script], fates...) })
}

// from now on all calls of a script meet this, after those that next names.
func (m *meddler) always(script string, f fate) { m.locked(func() { m.rule[script] = f }) }

// meddled is how many calls of a script have met their fate.
func (m *meddler) meddled(script string) (n int) {
	m.locked(func() { n = m.met[script] })
	return n
}

// sent is how many calls of a script went through, answered.
func (m *meddler) sent(script string) (n int) {
	m.locked(func() { n = m.runs[script] })
	return n
}

// deliver sends all deferred calls, in their order, and waits for them.
func (m *meddler) deliver() {
	var late []func()
	m.locked(func() { late, m.late = m.late, nil })
	for _, send := range late {
		send()
	}
}

// Do is what scriptkit calls.
func (m *meddler) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	words := slices.Clone(cmd.Commands())
	switch m.fate(words) {
	case unheard:
		m.Client.Do(context.Background(), cmd)
	case deferred:
		again := func() { m.Client.Do(context.Background(), m.Client.B().Arbitrary(words...).Build()) }
		m.locked(func() { m.late = append(m.late, again) })
	default:
		result := m.Client.Do(ctx, cmd)
		if len(words) > 1 {
			m.locked(func() { m.runs[names[words[1]]]++ })
		}
		return result
	}
	<-ctx.Done()
	return rueidis.NewErrorResult(ctx.Err())
}

func (m *meddler) fate(words []string) fate {
	if !isScript(words) {
		return passed
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	script := names[words[1]]
	f := m.rule[script]
	if plan := m.plan[script]; len(plan) > 0 {
		f, m.plan[script] = plan[0], plan[1:]
	}
	if f != passed {
		m.met[script]++
	}
	return f
}
