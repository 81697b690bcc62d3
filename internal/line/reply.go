package line

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// Unexpected is the error for a reply that is none of those which the caller
// reads: the state has a newer release's format, or Go does not know the
// status, which the tests rule out.
func Unexpected(name string, r *scriptkit.Reply) error {
	if r.Status() == statusIncompatible {
		return state.Incompatible(name, r.Int(1))
	}
	return fmt.Errorf("berth: unexpected status %q for %q", r.Status(), name)
}

// Decimal writes a number as the scripts take it.
func Decimal(n int64) string { return strconv.FormatInt(n, 10) }

// Lane is where claims of a priority wait, as scripts/line/place.lua has it.
func Lane(priority int) string { return string(appendLane(make([]byte, 0, 3), priority)) }

func appendLane(b []byte, priority int) []byte { return fmt.Appendf(b, "%03d", 2*(127-priority)) }

// Flag writes yes or no as the scripts take it.
func Flag(yes bool) string {
	if yes {
		return "1"
	}
	return "0"
}

// Left reads milliseconds that are left, where -1 stands for no end.
func Left(n int64) time.Duration {
	if n < 0 {
		return -1
	}
	return state.Millis(n)
}

// More says whether the flags at i say that the script has stopped at its bound.
func More(r *scriptkit.Reply, i int) bool { return r.Int(i)&flagMore != 0 }

// The flags of replies; see scripts/line/reply.lua.
const (
	flagConfirmed = 1 << iota
	flagMore
	flagFirst
	flagOwn
)

// num reads element i, 0 where the reply ends before.
func num(r *scriptkit.Reply, i int) int64 {
	if i >= r.Len() {
		return 0
	}
	return r.Int(i)
}

// text reads element i, "" where the reply ends before.
func text(r *scriptkit.Reply, i int) string {
	if i >= r.Len() {
		return ""
	}
	return r.Str(i)
}

// Texts are the elements from i on.
func Texts(r *scriptkit.Reply, i int) (all []string) {
	for ; i < r.Len(); i++ {
		all = append(all, r.Str(i))
	}
	return all
}

// refusals are why an acquire got nothing, by status.
var refusals = map[string]berth.AcquireError{
	statusFull:     {Reason: berth.ReasonFull},
	statusHeld:     {Reason: berth.ReasonHeld},
	statusResting:  {Reason: berth.ReasonResting},
	statusAbsent:   {Reason: berth.ReasonAbsent, Cause: berth.ErrAbsent},
	statusAhead:    {Reason: berth.ReasonQueuedAhead},
	statusPaused:   {Reason: berth.ReasonPaused},
	statusTooHeavy: {Reason: berth.ReasonTooHeavy},
	statusDiffers:  {Reason: berth.ReasonCapacity},
	statusLimited:  {Reason: berth.ReasonLimited},
	statusCrowded:  {Reason: berth.ReasonTooManyEntries, Cause: berth.ErrTooManyEntries},
	statusDeadlock: {Reason: berth.ReasonDeadlock, Cause: berth.ErrDeadlock},
	statusGone:     {Reason: berth.ReasonGone},
	statusForeign:  {Reason: berth.ReasonFailed, Cause: errors.New("berth: the claim's id is on record for another node")},
}

// plainly reads the reply of the plain case. Of a grant it is the fence, and in a pool how many resources there are, and the
// resource; of a claim that waits see joined.
func (s *Calls) plainly(c *engine.Claim, r *scriptkit.Reply) (a engine.Answer, resource string, err error) {
	first, rest, more := strings.Cut(r.Str(1), " ")
	n, err := strconv.ParseInt(first, 10, 64)
	switch {
	case r.Err() != nil || err != nil:
		return a, "", cmp.Or(r.Err(), err)
	case len(first) < fenceDigits:
		a, err = s.joined(c, n, rest)
		return a, "", err
	}
	if a = s.plain(c, n); more {
		setting, resource, _ := strings.Cut(rest, " ")
		a.Capacity, err = state.ParseCount(setting)
		return a, resource, err
	}
	c.Plain.Store(!c.Record.NoRenew)
	return a, "", nil
}

// joined reads the reply to a claim that waits behind its ticket: 1 where the next to be told is one of this node, when
// that is (ms), how many stand ahead of it, and in a pool how many resources there are.
func (s *Calls) joined(c *engine.Claim, ticket int64, rest string) (engine.Answer, error) {
	a := engine.Answer{Ticket: ticket, Left: c.Record.Wait, Capacity: c.Capacity}
	a.Place = fmt.Sprintf("%s %013d", Lane(c.Record.Priority), ticket)
	var next int64
	into := []any{&a.NextDeadline.First, &next, &a.Ahead}
	if s.kind.Kind == keyspace.Pool {
		a.NextDeadline.Own, into = true, append(into, &a.Capacity)
	}
	_, err := fmt.Sscan(rest, into...)
	a.NextDeadline.In = Left(next)
	if s.kind.Kind == keyspace.Pool {
		a.Capacity -= state.Base
	}
	return a, err
}

// answer reads the reply of acquire and of requeue: status, ticket, fence, left_ms, flags,
// setting, extra, place, ahead, next_ms, and what else the kind's script tells; or status, held, waiting,
// swept, flags, setting, and of a name that is paused extra, left_ms, since, reason.
func answer(name string, r *scriptkit.Reply) (a engine.Answer, extra string, err error) {
	flags := num(r, 4)
	a.NextDeadline = engine.NextDeadline{In: -1, More: flags&flagMore != 0, First: flags&flagFirst != 0, Own: flags&flagOwn != 0}
	a.Capacity = int(num(r, 5))
	switch status := r.Status(); status {
	case statusGranted, statusReentered:
		a.Granted, a.Confirmed = true, flags&flagConfirmed != 0
		a.Ticket, a.Fence, a.Left, a.Told = r.Int(1), r.Int(2), Left(r.Int(3)), text(r, 7)
	case statusQueued:
		a.Ticket, a.Left, a.Place, a.Ahead, a.NextDeadline.In = r.Int(1), state.Millis(r.Int(3)), r.Str(7), int(r.Int(8)), Left(r.Int(9))
		if apart := strings.SplitN(a.Place, " ", 4); len(apart) == 4 { // see scripts/pool/lane.lua
			a.Resource = apart[3]
		}
		a.Told = text(r, 10)
	default:
		refused, known := refusals[status]
		if !known {
			return engine.Answer{}, "", Unexpected(name, r)
		}
		a.Refused = &refused
		refused.Held, refused.Waiting, refused.Swept = int(num(r, 1)), int(num(r, 2)), int(num(r, 3))
		refused.Capacity = a.Capacity
		if status == statusPaused {
			refused.Pause = pauseOf(r)
		}
	}
	return a, text(r, 6), r.Err()
}

// Refusal reads a reply of the shape of acquire that says that there is nothing to get, and
// tells of what it swept in a call with that context.
func (s *Calls) Refusal(ctx context.Context, name string, r *scriptkit.Reply) *berth.AcquireError {
	a, _, _ := answer(name, r)
	s.Tell.Swept(ctx, name, a.Refused.Swept)
	return a.Refused
}

// parting reads the reply of release: status, flags, fence, extra; or plain, fence.
func parting(name string, r *scriptkit.Reply) (p engine.Parting, extra string, err error) {
	p = engine.Parting{Word: engine.Released(r.Status()), Unanswered: r.Unanswered}
	switch r.Status() {
	case scriptkit.Plain:
		p.Word, p.Fence = engine.GivenBack, r.Int(1)
		return p, "", r.Err()
	case statusReleased, statusCancelled, statusExpired:
		p.More, p.Fence = More(r, 1), r.Int(2)
	case statusNotHeld:
		if r.Str(1) == toldReleased {
			p.Word = engine.ForceReleased
		}
	case statusTaken:
	default:
		return p, "", Unexpected(name, r)
	}
	return p, text(r, 3), r.Err()
}

// nextDeadline reads what the replies of renew, restore and sweep begin with: status, next_ms,
// flags, setting.
func nextDeadline(r *scriptkit.Reply) engine.NextDeadline {
	return engine.NextDeadline{In: Left(r.Int(1)), First: r.Int(2)&flagFirst != 0, Own: r.Int(2)&flagOwn != 0, More: More(r, 2)}
}

func setting(r *scriptkit.Reply) int { return int(r.Int(3)) }

// renewed reads what a renewal says of the i-th of n claims: behind the head word, left_ms
// and fence of each, then the extra of each, where the kind has one.
func renewed(r *scriptkit.Reply, n, i int) engine.Status {
	at := 4 + 3*i
	st := engine.Status{Word: engine.Word(r.Str(at)), Resource: text(r, 4+3*n+i)}
	if st.Word == engine.WordTooHeavy {
		st.Capacity, st.Held, st.Waiting = setting(r), int(r.Int(at+1)), int(r.Int(at+2))
		return st
	}
	st.Left, st.Fence = Left(r.Int(at+1)), r.Int(at+2)
	return st
}

// restored reads what a restore says of the i-th of n claims: behind the head held and
// waiting, then a word for each.
func restored(r *scriptkit.Reply, _, i int) engine.Status {
	st := engine.Status{Word: engine.Word(r.Str(6 + i))}
	if st.Word == engine.WordTooHeavy {
		st.Capacity, st.Held, st.Waiting = setting(r), int(r.Int(4)), int(r.Int(5))
	}
	return st
}

// Stale reads the reply of a script that has refused an operator's call: stale, the revision of
// what has overtaken the call, its target, and what it has changed.
func Stale(name string, r *scriptkit.Reply) (stale *berth.OvertakenError, revision int64) {
	return &berth.OvertakenError{Name: name, Resource: r.Str(2), Changed: r.Str(3)}, r.Int(1)
}
