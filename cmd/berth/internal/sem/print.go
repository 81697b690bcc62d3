package sem

import (
	"fmt"
	"strconv"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/text"
)

// Documents are what the commands of this package alone print with --json, by command.
func Documents() map[string]any {
	return map[string]any{"sem resize": app.Named[resizeDocument]{}}
}

type resizeDocument struct {
	Capacity int           `json:"capacity"`
	Before   int           `json:"before"` // 0 where none was stored
	Kept     bool          `json:"kept"`
	Idle     time.Duration `json:"idleMs"` // how long it stays when the semaphore is idle
}

func printList(a *app.App, all []berth.Name, most int) error {
	if len(all) == 0 {
		_, err := fmt.Fprintf(a.Out, "No semaphore is in use in namespace %s.\n", text.Plain(a.Namespace))
		return err
	}
	rows := make([][]string, 0, len(all))
	for _, s := range all {
		rows = append(rows, []string{
			text.Plain(s.Name), strconv.Itoa(s.Capacity), strconv.Itoa(s.Held), strconv.Itoa(free(s)), strconv.Itoa(s.Holders), strconv.Itoa(s.Waiting),
		})
	}
	heading, rows := app.PausedColumn(all, []string{"NAME", "CAPACITY", "HELD", "FREE", "HOLDERS", "WAITING"}, rows)
	return app.Limited(a.Out, heading, rows, most)
}

// free is how much of the capacity is free.
func free(n berth.Name) int { return max(0, n.Capacity-n.Held) }

func printSemaphore(a *app.App, s berth.Name, holders []berth.Holder, waiters []berth.Waiter, most int) error {
	fmt.Fprintf(a.Out, "%s: capacity %d, held %d, free %d, waiting %d\n",
		text.Plain(s.Name), s.Capacity, s.Held, free(s), s.Waiting)
	fmt.Fprint(a.Out, app.PauseText(s.Pause))
	return a.PrintClaims(holders, waiters, true, most)
}

func printResized(a *app.App, name string, before, capacity int, kept bool) error {
	idle := resizeLinger
	if kept {
		idle = berth.Forever
	}
	if a.JSON {
		return app.PrintJSON(a, name, resizeDocument{capacity, before, kept, idle})
	}
	says := fmt.Sprintf("%s: capacity %d", text.Plain(name), capacity)
	switch {
	case before == 0:
		says += ", created"
	case before != capacity:
		says += fmt.Sprintf(", was %d", before)
	}
	stay := "kept for good"
	if !kept {
		stay = "forgotten when idle for " + text.Human(idle) + ", unless --keep is given"
	}
	_, err := fmt.Fprintf(a.Out, "%s; %s\n", says, stay)
	return err
}
