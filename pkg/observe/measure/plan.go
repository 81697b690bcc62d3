package measure

import "github.com/berth-go/berth/pkg/observe"

// row is one number of each primitive and class: of a counter or a gauge, and the value of the
// instrument's last label, "" where that is the class.
type row struct {
	instrument int
	value      string
}

// The rows that are not of one kind of event.
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

// fixedRows are they.
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

// plan says what an event of a kind adds to, besides what its fields say.
type plan struct {
	row          int   // the one that counts it
	ends         bool  // it is counted only where it is the first news that a hold is over
	also         int   // another row that counts it, 0 for none
	waits, holds int64 // what it adds to the gauges
	timed        bool  // its Waited goes to the histogram of waits
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
// fixed.
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
