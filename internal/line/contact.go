package line

import (
	"context"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/notice"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// While all names are paused, a process pauses each name that it comes upon before it asks for it: a walk over the
// names finds only those that are there. It does so each time: the name's server may have lost its pause.

// met is what a process has found of a name that it was to pause.
type met uint8

const (
	metOpen   met = iota // it is excepted from the pause of all names, or is in a newer form
	metPaused            // nothing is granted of it
	metIdle              // nobody holds it or waits for it, and it was left alone
)

// before is engine.Config.Before of the kind. A claim that would not wait pauses no name that is idle, for that
// would make a name that is not there; it is refused here.
func (s *Calls) before(ctx context.Context, c *engine.Claim) (*berth.AcquireError, error) {
	told := s.cfg.Notice.Current(ctx, s.kind.Kind)
	left := s.cfg.Notice.Left(told)
	if left == 0 {
		return nil, nil
	}
	word := pauseFirst
	if !c.MayWait {
		word = pauseWalk
	}
	found, err := s.contact(ctx, c.Name, word, told, left)
	if found == metIdle {
		pause := &berth.Pause{Left: left, Since: time.UnixMilli(told.Number), Reason: told.Reason}
		return &berth.AcquireError{Reason: berth.ReasonPaused, Pause: pause}, nil
	}
	return nil, err
}

// stands is engine.Config.Stands of the kind. The acquire may have been sent before the process knew of a pause, or the name's server
// may have lost the pause between the contact and the acquire.
func (s *Calls) stands(ctx context.Context, c *engine.Claim) bool {
	told := s.cfg.Notice.Sure(ctx, s.kind.Kind)
	left := s.cfg.Notice.Left(told)
	if left == 0 || !c.AtOnce() {
		return true
	}
	found, err := s.contact(ctx, c.Name, pauseFirst, told, left)
	return err == nil && found == metOpen
}

// contact pauses a name as all are, unless somebody has decided otherwise who knew of that. It makes one attempt.
func (s *Calls) contact(ctx context.Context, name, word string, told notice.State, left time.Duration) (met, error) {
	ctx, cancel := scriptkit.Limit(ctx, s.cfg.Settings.CallTimeout)
	defer cancel()
	r, err := s.Run(ctx, s.kind.Scripts.Pause, scriptkit.Once, name, s.pauseAll(word, told.Number, left, told.Reason)...)
	if err != nil {
		return metOpen, err
	}
	found := metOpen
	switch r.Status() {
	case statusPaused, statusKept:
		if r.Int(1) > 0 {
			found = metPaused
		}
	case statusIdle:
		found = metIdle
	case statusIncompatible: // which is for the acquire to say
	default:
		return metOpen, Unexpected(name, &r)
	}
	return found, r.Err()
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
