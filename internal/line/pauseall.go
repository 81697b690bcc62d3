package line

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/notice"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// mostNamed is how many names that could not be asked the error has.
const mostNamed = 100

// walkBatch is how many names of a server are paused at a time.
const walkBatch = 100

// PauseAll has nothing granted of any name of some kinds for so long: it tells all clients, and pauses what is
// in use. It returns *berth.ConfigError, berth.ErrOvertaken, ctx's error, or the server's errors.
func (p *Process) PauseAll(ctx context.Context, lasts time.Duration, reason string, kinds ...keyspace.Kind) (berth.PausedAll, error) {
	if err := checkPause(lasts, reason); err != nil {
		return berth.PausedAll{}, err
	}
	return p.walkAll(scriptkit.For(ctx, "PauseAll of "+words(kinds)), lasts, reason, kinds)
}

// UnpauseAll ends that, and the pauses that it has made. What an operator has paused by itself stays so.
func (p *Process) UnpauseAll(ctx context.Context, kinds ...keyspace.Kind) (berth.PausedAll, error) {
	return p.walkAll(scriptkit.For(ctx, "UnpauseAll of "+words(kinds)), 0, "", kinds)
}

// words names kinds, for people.
func words(kinds []keyspace.Kind) string {
	var all []string
	for _, kind := range kinds {
		all = append(all, word(kind)+"s")
	}
	return strings.Join(all, ", ")
}

// walkAll tells all clients, and goes through the names twice: at once, and when all have heard, unless the pause
// is over by then. Names that come meanwhile are paused by those who ask for them.
func (p *Process) walkAll(ctx context.Context, lasts time.Duration, reason string, kinds []keyspace.Kind) (berth.PausedAll, error) {
	w := &walk{p: p, reason: reason}
	for _, kind := range kinds {
		w.kinds = append(w.kinds, &paused{face: p.Face(kind)})
		w.fields = append(w.fields, notice.Pause(kind))
	}
	var err error
	if w.number, err = p.say(ctx, lasts, reason, w.fields...); err != nil {
		return berth.PausedAll{}, err
	}
	said := p.Clock.Now()
	if lasts > 0 {
		w.ends = said + lasts
	}
	w.pass(ctx)
	timer := time.NewTimer(notice.Heard - (p.Clock.Now() - said))
	defer timer.Stop()
	select {
	case <-timer.C:
		if !w.stale && !w.over() {
			w.pass(ctx)
		}
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		w.errs = append(w.errs, scriptkit.CallersEnd(ctx))
	}
	for _, k := range w.kinds {
		w.found.Names += k.names
		k.face.Tell.Send(observe.Event{Kind: w.does(), Context: ctx, Left: lasts, Count: k.names, Detail: reason})
	}
	return w.found, errors.Join(append(w.errs, w.unread())...)
}

// unread names what could not be asked, nil for nothing.
func (w *walk) unread() error {
	if len(w.left) == 0 {
		return nil
	}
	others := ""
	if more := w.found.Unread - len(w.left); more > 0 {
		others = fmt.Sprintf(" and %d more", more)
	}
	return fmt.Errorf("berth: these names could not be asked: %s%s", strings.Join(w.left, ", "), others)
}

// walk is a walk over all names of some kinds.
type walk struct {
	p      *Process
	kinds  []*paused
	fields []string      // of the notice
	number int64         // that they have
	ends   time.Duration // when the pause ends, on the clock; 0 where the walk ends one
	reason string

	stale bool // another notice stands

	mu    sync.Mutex
	found berth.PausedAll // guarded by mu: what this pass has found, but for the names
	left  []string        // guarded by mu: the first names that this pass could not ask, quoted
	errs  []error         // guarded by mu: of this pass
}

// paused is a kind whose names a walk pauses.
type paused struct {
	face  *Face
	names int // guarded by walk.mu: how many are paused; of the end of a pause how many are not any more, in all passes
}

func (w *walk) does() observe.Kind {
	if w.ends > 0 {
		return observe.Paused
	}
	return observe.Unpaused
}

// over says whether the pause has ended by itself.
func (w *walk) over() bool { return w.ends > 0 && w.p.Clock.Now() >= w.ends }

// stands reads the notice. It reports false where that cannot be read, or another one stands: then another
// walk has overtaken this one. names are those that are not asked then.
func (w *walk) stands(ctx context.Context, names ...string) bool {
	told, ms, err := readNotice(ctx, &w.p.Config, w.fields...)
	if err != nil {
		w.failed(err, names...)
		return false
	}
	for _, f := range told {
		if f.Number != w.number {
			w.stale = true
			w.failed(staleAll(f.Until > ms, f.What))
			return false
		}
	}
	return true
}

// pass goes through all names in fat form once. A thin one has nobody waiting: no script grants it but for who
// asks, and that client pauses it first.
func (w *walk) pass(ctx context.Context) {
	w.found, w.left, w.errs = berth.PausedAll{}, nil, nil
	for _, k := range w.kinds {
		if w.ends > 0 {
			k.names = 0
		}
	}
	w.stands(ctx)
	for _, k := range w.kinds {
		for names := range k.face.fatNames(ctx) {
			if w.stale {
				return
			}
			w.server(ctx, k, names)
		}
	}
}

// server goes through the names of one server, and leaves the rest out where none of a batch was
// answered.
func (w *walk) server(ctx context.Context, k *paused, names iter.Seq2[string, error]) {
	batch := make([]string, 0, walkBatch)
	for name, err := range names {
		if err != nil {
			w.failed(err)
			continue
		}
		if batch = append(batch, name); len(batch) < walkBatch {
			continue
		}
		if !w.batch(ctx, k, batch) {
			return
		}
		batch = batch[:0]
	}
	w.batch(ctx, k, batch)
}

// batch pauses names, or ends their pauses. It reports false where none was answered, or none is to be asked
// any more.
func (w *walk) batch(ctx context.Context, k *paused, names []string) (answered bool) {
	if len(names) == 0 || !w.stands(ctx, names...) {
		return false
	}
	left := max(0, w.ends-w.p.Clock.Now())
	if w.ends > 0 && left == 0 {
		return false
	}
	f, calls := k.face, make([]scriptkit.Call, len(names))
	for i, name := range names {
		args := append(f.args(name, 5), f.pauseAll(pauseWalk, w.number, left, w.reason)...)
		calls[i] = scriptkit.Call{Script: f.kind.Scripts.Pause, Keys: f.keysFor(f.kind.Scripts.Pause, name), Args: args}
	}
	var on []string // guarded by w.mu: those whose script has stopped at its bound
	once, cancel := scriptkit.Limit(ctx, w.p.Settings.CallTimeout)
	defer cancel()
	w.p.Runner.RunMany(once, calls, func(i int, r scriptkit.Reply, err error) {
		more := false
		if err == nil {
			more, err = w.take(k, names[i], &r)
		}
		if err != nil {
			w.failed(err, names[i])
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if answered = true; more {
			on = append(on, names[i])
		}
	})
	for _, name := range on {
		if err := f.SweepOn(ctx, name, true); err != nil {
			w.failed(err)
		}
	}
	return answered
}

// take counts what became of a name.
func (w *walk) take(k *paused, name string, r *scriptkit.Reply) (more bool, err error) {
	counts := false
	switch r.Status() {
	case statusPaused: // by itself, where the walk ends a pause
		counts, more = w.ends > 0, More(r, 4)
	case statusUnpaused:
		counts, more = true, More(r, 4)
	case statusKept:
		counts = w.ends > 0 && r.Int(1) > 0
	case statusIdle:
	default:
		return false, Unexpected(name, r)
	}
	if counts {
		w.mu.Lock()
		k.names++
		w.mu.Unlock()
	}
	return more, r.Err()
}

// failed notes names that could not be asked. Errors that are much alike are told a few times.
func (w *walk) failed(err error, names ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.found.Unread += len(names)
	for _, name := range names[:min(len(names), mostNamed-len(w.left))] {
		w.left = append(w.left, strconv.Quote(name))
	}
	if len(w.errs) < mostUnanswered {
		w.errs = append(w.errs, err)
	}
}
