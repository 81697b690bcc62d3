package testkit

import (
	"context"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/line"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// scripts are all scripts by their SHA-1.
var scripts = sync.OnceValue(func() map[string]*scriptkit.Script {
	byHash := make(map[string]*scriptkit.Script)
	for _, s := range line.Library().Scripts() {
		byHash[s.SHA] = s
	}
	return byHash
})

// Script finds a script by its SHA-1, nil where there is none.
func Script(sha string) *scriptkit.Script { return scripts()[sha] }

// Process is what one client of a test, a node, stands on: a link of its own and a
// record of its events.
type Process struct {
	*link.Link
	W     *World
	Redis rueidis.Client

	mu     sync.Mutex
	events []observe.Event // guarded by mu
	closes func(context.Context) error
}

// Process makes a link and a rueidis client on it. The client of the primitive takes
// its Observer, and is handed to Closes.
func (w *World) Process() *Process {
	w.T.Helper()
	p := &Process{W: w, Link: link.New(Script)}
	var err error
	p.Redis, err = w.Server.Client(RarePings, p.Wrap)
	require.NoError(w.T, err)
	w.T.Cleanup(p.Redis.Close)
	return p
}

// Observer records the events, and tells them to also if that is not nil.
func (p *Process) Observer(also observe.Observer) observe.Observer {
	return observe.Func(func(e observe.Event) {
		p.mu.Lock()
		p.events = append(p.events, e)
		p.mu.Unlock()
		if also != nil {
			also.Observe(e)
		}
	})
}

// Closes says how the client is closed, at the end of the test at the latest.
func (p *Process) Closes(by func(context.Context) error) {
	p.closes = by
	p.W.T.Cleanup(p.Shut)
}

// Shut closes the client, as a program does before it ends.
func (p *Process) Shut() {
	if p.closes != nil {
		_ = p.closes(context.Background())
		p.closes = nil
	}
}

// Die ends the node's connections for good: nothing of it reaches the server any
// more, as after a kill -9.
func (p *Process) Die() { p.Cut() }

// Events are the events so far.
func (p *Process) Events() []observe.Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]observe.Event(nil), p.events...)
}

// Kinds are the kinds of the events so far.
func (p *Process) Kinds() []observe.Kind {
	var kinds []observe.Kind
	for _, e := range p.Events() {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

// Scripts is how often each script has been sent since the last Fresh.
func (p *Process) Scripts() map[string]int {
	counts := p.Counts()
	for name := range counts {
		if name == strings.ToUpper(name) {
			delete(counts, name) // a command, as rueidis sends some when it connects
		}
	}
	return counts
}

// Fresh forgets the events and the counts of commands.
func (p *Process) Fresh() {
	p.mu.Lock()
	p.events = nil
	p.mu.Unlock()
	p.Reset()
}

// Wait is an acquire that is on its way.
type Wait[H any] struct {
	W      *World
	Cancel context.CancelCauseFunc
	Done   chan struct{}

	// What it returned, once Done is closed, and when.
	Handle H
	Err    error
	At     time.Duration
}

// Queue acquires in the background, and lets everything settle.
func Queue[H any](ctx context.Context, w *World, acquire func(context.Context) (H, error)) *Wait[H] {
	a := &Wait[H]{W: w, Done: make(chan struct{})}
	ctx, a.Cancel = context.WithCancelCause(ctx)
	go func() {
		defer close(a.Done)
		a.Handle, a.Err = acquire(ctx)
		a.At = w.Now()
	}()
	synctest.Wait()
	return a
}

// Pending says that the acquire has not returned.
func (a *Wait[H]) Pending() bool {
	select {
	case <-a.Done:
		return false
	default:
		return true
	}
}

// Returned waits for the acquire to return, no longer than a second beyond the
// moment at which it should: what renews by itself would go on for ever.
func (a *Wait[H]) Returned(by time.Duration) {
	a.W.T.Helper()
	patience := time.NewTimer(max(by-a.W.Now(), 0) + time.Second)
	defer patience.Stop()
	select {
	case <-a.Done:
	case <-patience.C:
		require.Fail(a.W.T, "it has not returned")
	}
}

// Granted waits for the handle, and fails if it came at another time.
func (a *Wait[H]) Granted(at time.Duration) H {
	a.W.T.Helper()
	a.Returned(at)
	require.NoError(a.W.T, a.Err)
	require.Equal(a.W.T, at, a.At, "when it was granted")
	return a.Handle
}

// GrantedBy waits for the handle, and fails if it came before at, or more than
// 50 ms after it.
func (a *Wait[H]) GrantedBy(at time.Duration) H {
	a.W.T.Helper()
	a.Returned(at)
	require.NoError(a.W.T, a.Err)
	require.GreaterOrEqual(a.W.T, a.At, at)
	require.LessOrEqual(a.W.T, a.At, at+50*time.Millisecond)
	return a.Handle
}

// Refused waits for the error, and fails if it came at another time or for
// another reason.
func (a *Wait[H]) Refused(at time.Duration, reason berth.Reason) *berth.AcquireError {
	a.W.T.Helper()
	a.Returned(at)
	require.Nil(a.W.T, a.Handle)
	require.ErrorIs(a.W.T, a.Err, berth.ErrNotAcquired)
	var refusal *berth.AcquireError
	require.ErrorAs(a.W.T, a.Err, &refusal)
	require.Equal(a.W.T, reason, refusal.Reason)
	require.Equal(a.W.T, at, a.At, "when it was refused")
	require.NotEmpty(a.W.T, refusal.Claim)
	return refusal
}
