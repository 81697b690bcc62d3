package engine

import (
	"errors"
	"fmt"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/heartbeat"
	"github.com/berth-go/berth/pkg/observe"
)

// machine is what this process knows of a claim. It is pure: it has no lock, no clock and
// no connection, and only its method on, which is in machine.go, changes it once it has begun.
// [Claim] guards it by a mutex, and the engine does what the effects of an event say.
type machine struct {
	course *table // nil for the one that all claims have
	claim  *Claim // what was asked for: its exported fields, which do not change
	wanted bool   // an answer has said that somebody wants the hold back: it stays so
	wants  bool   // it has waited for WantAfter, and its heartbeats ask for holds until one has

	phase   phase
	place   place
	grant   grant
	terms   terms
	news    news
	silence silence
	end     end
}

// place is where the claim stands in line. An answer to its acquire sets it, and one to a
// requeue moves it; every answer that it still waits extends it.
type place struct {
	ticket int64
	stood  bool          // it has stood there: observe.Queued is told of it, or was
	at     string        // the lesser text stands before
	apart  bool          // it waits for one resource alone
	heard  time.Duration // start of the last own call that said so
	left   time.Duration // what that call's answer said is left
}

// grant is what the claim was given. An answer sets it, or a push; only an exchange changes
// it afterwards.
type grant struct {
	gift
	confirmed bool          // an own call has followed it
	handed    bool          // the caller has got the handle
	wanted    bool          // it was wanted back already then
	since     time.Duration // when that was
	loose     bool          // the handle was left without the server
}

// terms is what the deadlines of the hold go by. The record sets it, or for an entry of an
// owner that held already the answer to its acquire.
type terms struct {
	Terms
	entry    *Entry        // not nil for an entry of an owner that held already
	capacity int           // the one that the server last named, 0 for none
	limit    time.Duration // the local end of the maximum hold, 0 for none
	mayRun   bool          // a call since the last answered one may have run, and begun the maximum hold
	since    time.Duration // when the first of these was sent
	named    bool          // another lease was asked for: from then on its calls name the one that it has
	beyond   time.Duration // how much further off than the lease reaches the deadline may be: a longer one set it
}

// news tells which of two things heard of a claim is the newer one. Whatever is sent or
// heard of the claim changes it.
//
// It goes by what this process knows: when a call was sent, and what the claim knew then. A
// number of the server in every answer and push would not do. After a flush it starts anew,
// and all that the empty server says would count as old. The time of the next server may be
// behind: a holder without an end would take "unknown" for old, and go on beside the next
// holder. A forged push can carry any number. A call that was not answered has none, nor has
// a deadline that is lowered before its call is sent. During an exchange a number does not
// tell whether another fence comes from the exchange or from a failover.
type news struct {
	asked    bool          // an attempt of its acquire was sent
	lost     bool          // an attempt, or a restore, went unanswered: it may run yet
	answered time.Duration // start of the newest answered call, or unasked
	sent     time.Duration // when the last heartbeat was sent that may run yet, 0 for none
	secret   string        // what a push proves itself by, "" until a record has it
	pushed   gift          // what the last push said
	pushes   int           // how many pushes have come
	fresh    bool          // the last one has not been made use of, nor has an answer denied it
	known    int           // how often what it holds has become known; it orders answers, which time would not
	doubt    bool          // it was asked for or restored again: a push may be about an earlier grant
	swapping bool          // a call that exchanges what it holds is under way
	askAgain bool          // an answer that came meanwhile was passed over
}

// end is why the claim ended, and what has become of its release.
type end struct {
	err    error
	own    bool  // the handle lived when it was released
	mayRun bool  // a release may have run without its answer being read
	final  bool  // no release is to be sent any more
	told   bool  // the observer is told that the hold is over, or was
	result error // what every release returns then
}

// gift is what a grant gives.
type gift struct {
	fence    int64
	resource string // "" where the primitive has no resources
}

// timing is what is known of how long a hold lasts: what an own call that began at start
// said is left. Below 0 is without end.
type timing struct {
	start     time.Duration
	left      time.Duration
	most      time.Duration // the deadline is no later than this, 0 for no bound
	renews    bool          // that call was one of the holder's, which renews what is not fixed
	version   int           // in which that call was sent, of its owner's group
	confirmed bool
}

// snapshot is what was known of a claim when a call was sent. The answer is as old as that: a
// push may have overtaken it.
type snapshot struct {
	pushes  int // of news
	known   int // of news
	version int // of its owner's group
}

// event is what happens to a claim, with what is known of that. It is small, since a claim
// takes some of them.
type event struct {
	kind      eventKind
	late      bool          // of an answer to an attempt: another one goes on
	mayRun    bool          // of a failure: the call may have run, and begun the hold
	revives   bool          // and it may bring the claim back to the server
	beats     bool          // of a call: it is a heartbeat
	confirmed bool          // of a grant: it followed an own call
	stale     bool          // of an answer that it holds: its deadline is out of date
	wanted    bool          // and somebody wants it back
	asked     bool          // of an answer that it waits: it has asked for holds of others
	again     bool          // of an answer to a release: an earlier attempt may have run
	stays     bool          // and other entries of the owner still hold the name
	unasked   bool          // and it is the engine's own, of what had ended before
	now       time.Duration // when it is heard, where that matters
	start     time.Duration // of an answer, a failure: when the call was sent
	left      time.Duration // of an answer: how much is left, below 0 for no end
	lease     time.Duration // of a call, an answer: the lease that it asks for, 0 for the one there is
	gift                    // of a grant, a push, or what a release has ended
	seen      snapshot      // of an answer to an own call
	entry     *Entry        // of a grant to an owner that held already
	ticket    int64         // of an answer to an attempt, or to a requeue
	apart     bool          // the place that an answer gives is in the lane of one resource
	ahead     int           // how many stand before the place that an answer gives
	epoch     int64         // the subscription after which the attempt was sent
	counts    counts        // of an answer to an attempt, or that it is too heavy
	text      string        // a place; the secret of a record or a push; the word for a release
	cause     error         // of a failure, an end, a refusal
}

// counts are what an answer says of the name.
type counts struct{ capacity, held, waiting int }

// action is a bit for each thing that the engine has to do.
type action uint32

const (
	doSend         action = 1 << iota // send the call that the event is about
	doUse                             // make use of what else the answer says: of the line, and how much is left
	doReturn                          // return to the waiting caller: it has the handle, or an error
	doConfirm                         // send a confirming call
	doWake                            // wake the waiting caller
	doJoin                            // count the claim in line, have its place kept
	doKeep                            // take it out of line, have its lease kept
	doTime                            // set its deadlines anew
	doLoosen                          // take its lease away
	doHurry                           // have a heartbeat ask at once
	doEcho                            // test the subscription
	doRestore                         // ask for its place again
	doForget                          // take it out of all that the engine keeps
	doFinish                          // end the handle's context
	doRemove                          // remove it from the server
	doReleaseEnded                    // release it there, where its handle has ended
	doWanted                          // close what the handle's Wanted has returned
)

// effects are what an event leads to.
type effects struct {
	do      action
	tell    observe.Kind  // what the observer is told, "" for nothing
	told    error         // the error that goes with that
	over    bool          // it is the first news that the hold is over
	result  error         // with doReturn and of a handle: why there is none; of a release: what it returns
	end     error         // with doFinish: why the hold has ended
	start   time.Duration // with doKeep: of the call that vouches for the grant
	left    time.Duration // with doKeep, or of an own call's answer: how much is left, below 0 for no end
	seen    snapshot      // of an own call: what is known when it is sent
	silence *silence      // with observe.Unavailable
}

func (fx *effects) has(d action) bool { return fx.do&d != 0 }

// begin returns the machine of a claim whose course begins. The server has it already where
// a hold is taken up.
func begin(c *Claim, asked bool) machine {
	return machine{
		claim: c, wanted: !c.Record.Wanted.IsZero(),
		terms: terms{Terms: Terms{Lease: c.Record.Lease, NoRenew: c.Record.NoRenew, MaxHold: c.Record.MaxHold}},
		news:  news{asked: asked, answered: unasked},
	}
}

// queued says whether the claim has stood in line, as far as is known.
func (m *machine) queued() bool { return m.place.stood }

// holds says whether the claim holds, as far as is known.
func (m *machine) holds() bool { return m.phase == granted || m.phase == held }

// alive says whether its caller has a handle that lives.
func (m *machine) alive() bool { return m.phase == held || m.phase == loose }

// isLoose says whether the caller has a handle without a hold.
func isLoose(m *machine) bool { return m.phase == loose }

// endless says whether its hold has no end of its own.
func (m *machine) endless() bool { return m.terms.Lease == berth.Forever && m.terms.MaxHold == 0 }

// done says whether nobody here holds or waits for it any more.
func (m *machine) done() bool { return m.phase == ended || m.phase == detached }

// says is the mode of a call. A waiting claim's heartbeat may ask for holds. A call that names the lease undoes what a late copy of RenewFor, or
// a failover, has made of it.
func (m *machine) says(mode Mode) Mode {
	switch t := &m.terms; {
	case m.wants && m.phase == waiting && mode == ModeBeat:
		return ModeWant
	case !t.named:
	case mode == ModeRenew:
		return modeFor(renewFor, t.Lease)
	case mode == ModeBeat && !t.NoRenew:
		return modeFor(keepFor, t.Lease)
	}
	return mode
}

// lasts has the hold go by another lease, which the server has taken. A hold without end stays one.
func (m *machine) lasts(lease, left time.Duration) {
	t := &m.terms
	if lease == berth.Forever || left < 0 && t.MaxHold == 0 {
		t.Lease, t.NoRenew, t.beyond = berth.Forever, true, 0
	} else if t.Lease != berth.Forever {
		t.Lease, t.beyond = lease, max(0, t.Lease-lease+t.beyond)
	}
}

// answer takes note of the answer to a call that was sent at start. It reports false for a
// call that is older than one that was answered before: its answer came late, and says
// nothing of what the claim has become since.
func (m *machine) answer(start time.Duration) (newest bool) {
	newest = start >= m.news.answered
	m.news.answered, m.silence = max(start, m.news.answered), silence{}
	if newest && start >= m.news.sent { // else a heartbeat is on its way that was sent later
		m.news.sent = 0
	}
	return newest
}

// bounded says whether the hold has a limit of its own, or no end, which is NoRenew too, or a
// lease shorter than the wait lease: what runs from the claimant's first call after the grant,
// which may be a heartbeat that is on its way already.
func (m *machine) bounded() bool {
	return m.terms.NoRenew || m.terms.MaxHold > 0 || m.terms.Lease < m.claim.Record.Wait
}

// overdue is the error of a hold whose time has run out: ErrExpired for a limit of its own,
// ErrLost for a lease that should have been renewed, with what refused that for good.
func (m *machine) overdue(cause error) error {
	if m.terms.NoRenew || errors.Is(cause, heartbeat.ErrLimit) && m.terms.MaxHold > 0 {
		return berth.ErrExpired
	} else if m.silence.newer != nil {
		return fmt.Errorf("%w: %w", berth.ErrLost, m.silence.newer)
	}
	return berth.ErrLost
}

// ending is the error of the hold's end, by its cause.
func (m *machine) ending(cause error, now time.Duration) error {
	if _, told := errors.AsType[*berth.EndError](cause); told {
		return cause
	}
	return &berth.EndError{Name: m.claim.Name, Claim: m.claim.ID, Fence: m.grant.fence, Held: now - m.grant.since, Cause: cause}
}

// blame makes a wait that ran out of time at a moment a failure where the server was
// silent: it never answered, or its last answer is older than the wait lease, so that the
// claim's place may be gone. Then nobody knows of others in the way. A claim that was not sent
// says so.
func (m *machine) blame(r *berth.AcquireError, now time.Duration) {
	if m.news.answered != unasked && now-m.news.answered <= m.claim.Record.Wait {
		return
	}
	err := m.silence.err
	if r.Reason == berth.ReasonTimedOut || r.Reason == berth.ReasonAttempts {
		switch {
		case err == nil && m.claim.kept:
			err = errNotSent
		case err == nil:
			err = errNoAnswer
			fallthrough
		default:
			r.Reason = berth.ReasonFailed
		}
	}
	if err != nil {
		r.Cause = errors.Join(r.Cause, err)
	}
}

// limits has a maximum hold run from a confirmed call that began at start, or from an
// earlier one that may have run.
func (m *machine) limits(start time.Duration) {
	t := &m.terms
	if t.MaxHold > 0 && t.limit == 0 {
		if t.mayRun {
			start = min(start, t.since)
		}
		t.limit = heartbeat.Deadline(start, t.MaxHold, t.lease())
	}
}

// time sets what an answer, or a push, says of the hold's deadlines. What is not confirmed
// has the wait lease, and its margin.
func (m *machine) time(spec *heartbeat.Spec, g timing) {
	t := &m.terms
	spec.Renews = !t.NoRenew && t.Lease != berth.Forever
	// However long the lease, what became of the hold is heard as soon as a
	// waiter would hear it.
	spec.Lease, spec.Pace = t.lease(), m.claim.Record.Wait
	left := g.left
	if left < 0 {
		left = berth.Forever
	}
	margin := spec.Lease
	if !g.confirmed {
		margin = min(m.claim.Record.Wait, left) // an entry may end long before its wait lease would: clocks drift for no longer
	}
	if t.named {
		spec.Beyond = t.beyond
	}
	spec.Limit = t.limit
	spec.Deadline = heartbeat.Deadline(g.start, left, margin)
	spec.Bounded = g.renews && spec.Bounds(left)
	if g.most != 0 && (spec.Deadline == 0 || spec.Deadline > g.most) {
		spec.Deadline = g.most
	}
	if m.phase == loose {
		spec.Renews, spec.Deadline, spec.Limit = false, 0, 0 // only its handle is left
	}
}
