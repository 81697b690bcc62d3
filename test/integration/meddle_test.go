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
	gate chan struct{}     // guarded by mu: pushes wait until it is closed
	late []func()          // guarded by mu: the calls that are deferred
	met  map[string]int    // guarded by mu: how many calls had a fate other than passed
	runs map[string]int    // guarded by mu: how many calls went through as they were
}

// meddler returns a connection to the world's server. The server knows all scripts
// by then, so that a call is one command.
func (w *world) meddler() *meddler {
	w.Helper()
	for _, s := range library.Scripts() {
		w.do("SCRIPT", "LOAD", s.Source())
	}
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

// next says what the next calls of a script will meet.
func (m *meddler) next(script string, fates ...fate) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.plan[script] = append(m.plan[script], fates...)
}

// from now on all calls of a script meet this, after those that next names.
func (m *meddler) always(script string, f fate) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rule[script] = f
}

// hold keeps pushes back until the function that it returns is called.
func (m *meddler) hold() (free func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	gate := make(chan struct{})
	m.gate = gate
	return sync.OnceFunc(func() { close(gate) })
}

// Receive is what wake calls.
func (m *meddler) Receive(ctx context.Context, cmd rueidis.Completed, deliver func(rueidis.PubSubMessage)) error {
	return m.Client.Receive(ctx, cmd, func(message rueidis.PubSubMessage) {
		m.mu.Lock()
		gate := m.gate
		m.mu.Unlock()
		if gate == nil {
			deliver(message)
			return
		}
		// Not here: this goroutine reads the connection.
		go func() {
			<-gate
			deliver(message)
		}()
	})
}

// meddled is how many calls of a script have met their fate.
func (m *meddler) meddled(script string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.met[script]
}

// sent is how many calls of a script went through, answered.
func (m *meddler) sent(script string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.runs[script]
}

func (m *meddler) count(words []string) {
	if len(words) > 1 {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.runs[names[words[1]]]++
	}
}

// deliver sends all deferred calls, in their order, and waits for them.
func (m *meddler) deliver() {
	m.mu.Lock()
	late := m.late
	m.late = nil
	m.mu.Unlock()
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
		m.mu.Lock()
		m.late = append(m.late, func() {
			m.Client.Do(context.Background(), m.Client.B().Arbitrary(words...).Build())
		})
		m.mu.Unlock()
	default:
		result := m.Client.Do(ctx, cmd)
		m.count(words)
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
