package sem

import (
	"fmt"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/pkg/keyspace"
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

func printSemaphore(a *app.App, s berth.Name, holders []berth.Holder, waiters []berth.Waiter, most int) error {
	a.PrintHead(fmt.Sprintf("%s: capacity %d, held %d, free %d, waiting %d",
		text.Plain(s.Name), s.Capacity, s.Held, view.Free(&s), s.Waiting), s.Pause)
	return a.PrintClaims(keyspace.Sem, s.Name, holders, waiters, most)
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
