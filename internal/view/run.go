package view

import (
	"fmt"
	"time"

	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/once"
)

// Run says what is known of a run; goesOn is of one that has begun.
func Run(i *once.Info, goesOn bool) string {
	if i == nil {
		return "none is known"
	}
	missed := ""
	if i.Missed > 0 {
		missed = fmt.Sprintf("; before it %s went by without a success", Count(i.Missed, "period"))
	}
	return fmt.Sprintf("attempt %d for the period from %s to %s, by %s, begun at %s, %s%s", i.Attempt,
		i.Period, once.Period{Start: i.Period.End}, text.Word(i.Label), i.Begun.UTC().Format(time.RFC3339Nano), became(i, goesOn), missed)
}

// became is how a run ended, if it has.
func became(i *once.Info, goesOn bool) string {
	says := text.Word(string(i.Outcome))
	switch {
	case i.Outcome == once.Begun && goesOn:
		return "goes on"
	case i.Outcome == once.Begun:
		return "has not ended, and its lock is gone: its process has died, or has lost the lock"
	case i.Outcome == once.Stopped:
		says = "stopped by its own process"
	}
	says += " after " + text.Human(i.Took())
	if i.Error != "" {
		says += ": " + text.Quoted(i.Error)
	}
	return says
}
