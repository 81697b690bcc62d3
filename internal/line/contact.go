package line

import (
	"context"
	"sync"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/notice"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// While all names are paused, a client pauses each name that it comes upon before it asks for it: a walk over the
// names finds only those that are there.

const (
	// contactAgain is when a name that was paused so is paused again: a flush may have ended that.
	contactAgain = 5 * time.Second
	// mostContacts is how many names are remembered. Of one that is forgotten, the next call is early.
	mostContacts = 10_000
)

// contacts are the names that a node has paused.
type contacts struct {
	mu     sync.Mutex
	number int64                    // guarded by mu: of the notice by which it has
	names  map[string]time.Duration // guarded by mu: when, on the clock
}

// known says whether a name was paused by a notice, and lately.
func (c *contacts) known(number int64, name string, now time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, known := c.names[name]
	return known && c.number == number && now-at < contactAgain
}

// add notes that a name was paused by a notice.
func (c *contacts) add(number int64, name string, now time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.number != number || len(c.names) >= mostContacts || c.names == nil {
		c.number, c.names = number, make(map[string]time.Duration)
	}
	c.names[name] = now
}

// before is engine.Config.Before. A claim that would not wait pauses no name that is idle, for that
// would make a name that is not there; it is refused here.
func (s *Calls) before(ctx context.Context, c *engine.Claim) (*berth.AcquireError, error) {
	told := s.cfg.Notice.Current(ctx)
	left := s.cfg.Notice.Left(told)
	if left == 0 || s.contacts.known(told.Number, c.Name, s.cfg.Clock.Now()) {
		return nil, nil
	}
	word := pauseFirst
	if !c.MayWait {
		word = pauseWalk
	}
	idle, err := s.contact(ctx, c.Name, word, told, left)
	if idle {
		pause := &berth.Pause{Left: left, Since: time.UnixMilli(told.Number), Reason: told.Reason}
		return &berth.AcquireError{Reason: berth.ReasonPaused, Pause: pause}, err
	}
	return nil, err
}

// contact pauses a name as all are, unless somebody has decided otherwise who knew of that. It
// reports whether it has left the name alone because it is idle. It makes one attempt.
func (s *Calls) contact(ctx context.Context, name, word string, told notice.State, left time.Duration) (idle bool, err error) {
	ctx, cancel := scriptkit.Limit(ctx, s.cfg.Settings.CallTimeout)
	defer cancel()
	r, err := s.Run(ctx, s.pause, scriptkit.Once, name, s.pauseAll(word, told.Number, left, told.Reason)...)
	if err != nil {
		return false, err
	}
	switch r.Status() {
	case statusPaused, statusKept:
		s.contacts.add(told.Number, name, s.cfg.Clock.Now())
	case statusIdle:
		return true, nil
	case statusIncompatible: // which is for the acquire to say
	default:
		return false, Unexpected(name, &r)
	}
	return false, nil
}

// The words by which a call says that it is part of a pause of all names.
const (
	pauseWalk  = "walk"
	pauseFirst = "first"
)

// pauseAll are what a call takes that is part of a pause of all names, or of its end.
func (s *Calls) pauseAll(word string, number int64, left time.Duration, reason string) []string {
	whole := (left + time.Millisecond - 1).Milliseconds() // no name is granted before the end
	return []string{Decimal(whole), reason, "0", word, Decimal(number)}
}
