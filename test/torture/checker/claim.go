package checker

import "github.com/berth-go/berth/test/torture/history"

// opID names an operation.
type opID struct {
	process string
	op      int64
}

// call is an operation: what was asked and what came of it.
type call struct {
	invoke  *history.Event
	outcome *history.Event // nil if there is none
}

func (c *call) is(kind history.Kind) bool { return c.outcome != nil && c.outcome.Kind == kind }

// claim is an acquire, and the hold that came of it.
type claim struct {
	call
	ok       *history.Event // its outcome, if that was a grant
	queued   *history.Event // the first
	restored bool           // its place was lost, once at least, or its first grant: then its call asked anew
	alive    []*history.Event
	ended    *history.Event // the first
	told     *history.Event // that it is wanted back: the first
	releases []*call
	extends  []*call
	looks    []*call
	forced   []*call
}

// askedAnew says that the call was granted another claim than the event is about: that one's grant had ended before its
// caller had it.
func (a *claim) askedAnew(e *history.Event) bool {
	about := e.Kind == history.Queued || e.Kind == history.Trouble
	return about && a.ok != nil && e.Claim != "" && e.Claim != a.ok.Claim
}

func (a *claim) fence() int64 { return a.ok.Fence }

func (a *claim) weight() int { return max(1, a.invoke.Weight, weightOf(a.ok)) }

func weightOf(e *history.Event) int {
	if e == nil {
		return 0
	}
	return e.Weight
}

// believed is the last moment at which the hold was believed in, nil if there is none.
func (a *claim) believed() *history.Event {
	if len(a.alive) == 0 {
		return nil
	}
	return a.alive[len(a.alive)-1]
}

// released is the first release that was answered OK.
func (a *claim) released() *call {
	for _, r := range a.releases {
		if r.is(history.OK) {
			return r
		}
	}
	return nil
}

// hold is what one grant gave: the claim that got it, and the re-entries that share
// its fence.
type hold struct {
	fence    int64
	resource string
	weight   int
	entries  []*claim // by the At of their OK
}

// first is the entry that was heard of first.
func (h *hold) first() *claim { return h.entries[0] }

// lease is for how long, in ns, the hold may last after its last heartbeat was answered,
// never where that is not known.
func (h *hold) lease() int64 {
	var lease int64
	for _, a := range h.entries {
		if a.invoke.Lease == 0 || len(a.extends) > 0 {
			return never
		}
		lease += a.invoke.Lease * ms // a re-entry may add its own
	}
	return lease + lease/100
}

// name is all that happened to one name.
type name struct {
	primitive, name string
	claims          []*claim // all acquires, by invoke
	granted         []*claim // those that are OK, by fence
	holds           []*hold  // by fence
	calls           []*call  // all operations, by invoke
	capacity        int      // of the name, or of each resource; 0 if not known
	cooldown        int64    // how long a resource rests after a hold, ns
	bound           map[string][]*claim
	adds, removes   map[string][]*call // by resource, by invoke
	wants           []*call            // what has asked for holds back, by invoke
	decides         []*call            // what has paused it, or ended its pause, by invoke
	halts           []stretch          // in which it may have been paused, or just have been
}

// key is the name as it is in keys.
func (n *name) key() string { return n.primitive + ":{" + n.name + "}" }

func (n *name) String() string { return n.primitive + " " + n.name }
