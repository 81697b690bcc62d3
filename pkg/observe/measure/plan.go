package measure

import "github.com/berth-go/berth/pkg/observe"

// row is a counter or a gauge that each primitive and class has once, with the value of the
// instrument's last label, "" if that label is the class.
type row struct {
	instrument int
	value      string
}

// The rows that do not belong to one kind of event.
const (
	rowWaiting = iota
	rowHeld
	rowRepeated
	rowNoAcquire
	rowNoRelease
	rowNoCleanup
	rowAnswered
	rowUnanswered
	rowUnknown
)

// fixed stands for an instrument: one of these rows counts the kind.
const fixed = -1

// fixedRows are the rows that do not belong to one kind of event.
func fixedRows() []row {
	return []row{
		rowWaiting:    {waiting, ""},
		rowHeld:       {held, ""},
		rowRepeated:   {repeatedCalls, ""},
		rowNoAcquire:  {unansweredCalls, "acquire"},
		rowNoRelease:  {unansweredCalls, "release"},
		rowNoCleanup:  {unansweredCalls, "cleanup"},
		rowAnswered:   {heartbeats, "answered"},
		rowUnanswered: {heartbeats, "unanswered"},
		rowUnknown:    {events, Other},
	}
}

// plan lists the rows that an event of a kind changes, whatever its fields say.
type plan struct {
	row          int   // the row that counts the event
	ends         bool  // the event is counted only if it is the first to say that a hold is over
	also         int   // another row that counts the event, 0 for none
	waits, holds int64 // how the event changes the gauges
	timed        bool  // the event's Waited goes to the histogram of waits
}

// plans returns the plan of each kind, and all rows.
func plans() (map[observe.Kind]plan, []row) {
	of, rows := make(map[observe.Kind]plan), fixedRows()
	for _, kind := range observe.Kinds() {
		p, counter := planOf(kind)
		if counter != fixed {
			p.row = len(rows)
			rows = append(rows, row{counter, string(kind)})
		}
		of[kind] = p
	}
	return of, rows
}

// planOf returns the plan of a kind, and the instrument that has a row for this kind alone, or
// else fixed.
func planOf(kind observe.Kind) (p plan, counter int) {
	switch kind {
	case observe.Queued:
		return plan{waits: 1}, events
	case observe.Granted:
		return plan{holds: 1, timed: true}, acquires
	case observe.Reentered:
		return plan{holds: 1}, acquires
	case observe.Resumed:
		return plan{holds: 1}, events
	case observe.Released, observe.ReleasedByOther, observe.Lost, observe.Expired, observe.ReentryEnded, observe.Detached:
		return plan{ends: true}, holdEnds
	case observe.ReleaseFailed:
		return plan{ends: true, also: rowNoRelease}, holdEnds
	case observe.Repeated:
		return plan{row: rowRepeated}, fixed
	case observe.CleanupFailed:
		return plan{row: rowNoCleanup}, fixed
	}
	if kind.EndsAcquire() {
		return plan{}, acquires
	}
	return plan{}, events
}
