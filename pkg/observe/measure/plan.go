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
	row          int  // the one that counts it
	ends         bool // but only where it is the first news that a hold is over
	also         int  // another row that counts it, 0 for none
	waits, holds int64
	timed        bool // it has the time of a wait that was worth it
}

// plans returns the plan of each kind, and all rows.
func plans() (map[observe.Kind]plan, []row) {
	of, rows := make(map[observe.Kind]plan), fixedRows()
	counted := func(kind observe.Kind, instrument int) plan {
		rows = append(rows, row{instrument, string(kind)})
		return plan{row: len(rows) - 1}
	}
	for _, kind := range observe.Kinds() {
		var p plan
		switch kind {
		case observe.Released, observe.ReleasedByOther, observe.Lost, observe.Expired, observe.ReentryEnded, observe.Detached,
			observe.ReleaseFailed:
			p = counted(kind, holdEnds)
			p.ends = true
		case observe.Repeated:
			p.row = rowRepeated
		case observe.CleanupFailed:
			p.row = rowNoCleanup
		default:
			if kind.EndsAcquire() {
				p = counted(kind, acquires)
			} else {
				p = counted(kind, events)
			}
		}
		switch kind {
		case observe.Queued:
			p.waits = 1
		case observe.Granted:
			p.holds, p.timed = 1, true
		case observe.Reentered, observe.Resumed:
			p.holds = 1
		case observe.ReleaseFailed:
			p.also = rowNoRelease
		}
		of[kind] = p
	}
	return of, rows
}
