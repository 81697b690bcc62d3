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
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// heard is how long after a notice was set each client that reads it goes by it; what such a
// client asked for before has been answered, too, but by a server that is very slow.
const heard = notice.Vouches + time.Second

// mostNamed is how many names that could not be asked the error has.
const mostNamed = 100

// walkBatch is how many names of a server are paused at a time.
const walkBatch = 100

// PauseAll has nothing granted of any name of the kind for so long: it tells all clients, and pauses what is
// in use. It returns *berth.ConfigError, berth.ErrStale, ctx's error, or the server's errors.
func (n *Node) PauseAll(ctx context.Context, lasts time.Duration, reason string) (berth.PausedAll, error) {
	if err := checkPause(lasts, reason); err != nil {
		return berth.PausedAll{}, err
	}
	return n.walkAll(n.For(ctx, "PauseAll", ""), lasts, reason)
}

// UnpauseAll ends that, and the pauses that it has made. What an operator has paused by itself stays so.
func (n *Node) UnpauseAll(ctx context.Context) (berth.PausedAll, error) {
	return n.walkAll(n.For(ctx, "UnpauseAll", ""), 0, "")
}

// walkAll tells all clients, and goes through the names twice: at once, and when all have heard, unless the pause
// is over by then. Names that come meanwhile are paused by those who ask for them.
func (n *Node) walkAll(ctx context.Context, lasts time.Duration, reason string) (berth.PausedAll, error) {
	number, err := n.say(ctx, n.Engine.ClaimID(), notice.Pause, lasts, reason)
	if err != nil {
		return berth.PausedAll{}, err
	}
	said := n.cfg.Clock.Now()
	w := &walk{n: n, number: number, reason: reason}
	if lasts > 0 {
		w.ends = said + lasts
	}
	w.pass(ctx)
	timer := time.NewTimer(heard - (n.cfg.Clock.Now() - said))
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
	n.Tell.Send(observe.Event{Kind: w.kind(), Context: ctx, Left: lasts, Count: w.found.Names, Detail: reason})
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

// walk is a walk over all names.
type walk struct {
	n      *Node
	number int64         // of the notice
	ends   time.Duration // when the pause ends, on the clock; 0 where the walk ends one
	reason string

	ended int  // how many pauses the passes before this one have ended
	stale bool // another notice stands

	mu    sync.Mutex
	found berth.PausedAll // guarded by mu: what this pass has found
	left  []string        // guarded by mu: the first names that this pass could not ask, quoted
	errs  []error         // guarded by mu: of this pass
}

func (w *walk) kind() observe.Kind {
	if w.ends > 0 {
		return observe.Paused
	}
	return observe.Unpaused
}

// over says whether the pause has ended by itself.
func (w *walk) over() bool { return w.ends > 0 && w.n.cfg.Clock.Now() >= w.ends }

// stands reads the notice. It reports false where that cannot be read, or another one stands: then another
// walk has overtaken this one. names are those that are not asked then.
func (w *walk) stands(ctx context.Context, names ...string) bool {
	told, ms, err := readNotice(ctx, w.n.cfg, notice.Pause)
	if err != nil {
		w.failed(err, names...)
		return false
	}
	if w.stale = told.Number != w.number; w.stale {
		w.failed(staleAll(told.Until > ms, told.What))
	}
	return !w.stale
}

// pass goes through all names in fat form once. A thin one has nobody waiting: no script grants it but for who
// asks, and that client pauses it first.
func (w *walk) pass(ctx context.Context) {
	w.ended += w.found.Names
	w.found, w.left, w.errs = berth.PausedAll{}, nil, nil
	w.stands(ctx)
	for names := range w.n.fatNames(ctx) {
		if w.stale {
			break
		}
		w.server(ctx, names)
	}
	if w.ends == 0 {
		w.found.Names += w.ended
	}
}

// server goes through the names of one server, and leaves the rest out where none of a batch was
// answered.
func (w *walk) server(ctx context.Context, names iter.Seq2[string, error]) {
	batch := make([]string, 0, walkBatch)
	for name, err := range names {
		if err != nil {
			w.failed(err)
			continue
		}
		if batch = append(batch, name); len(batch) < walkBatch {
			continue
		}
		if !w.batch(ctx, batch) {
			return
		}
		batch = batch[:0]
	}
	w.batch(ctx, batch)
}

// batch pauses names, or ends their pauses. It reports false where none was answered, or none is to be asked
// any more.
func (w *walk) batch(ctx context.Context, names []string) (answered bool) {
	if len(names) == 0 || !w.stands(ctx, names...) {
		return false
	}
	left := max(0, w.ends-w.n.cfg.Clock.Now())
	if w.ends > 0 && left == 0 {
		return false
	}
	calls := make([]scriptkit.Call, len(names))
	for i, name := range names {
		args := append(w.n.args(name, 5), w.n.pauseAll(pauseWalk, w.number, left, w.reason)...)
		calls[i] = scriptkit.Call{Script: w.n.cfg.Scripts.Pause, Keys: w.n.keysFor(w.n.cfg.Scripts.Pause, name), Args: args}
	}
	var on []string // guarded by w.mu: those whose script has stopped at its bound
	once, cancel := scriptkit.Limit(ctx, w.n.cfg.Settings.CallTimeout)
	defer cancel()
	w.n.cfg.Runner.RunMany(once, calls, func(i int, r scriptkit.Reply, err error) {
		more := false
		if err == nil {
			more, err = w.take(names[i], &r)
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
		if err := w.n.SweepOn(ctx, name, true); err != nil {
			w.failed(err)
		}
	}
	return answered
}

// take counts what became of a name.
func (w *walk) take(name string, r *scriptkit.Reply) (more bool, err error) {
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
		w.found.Names++
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
