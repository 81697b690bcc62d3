package sem

import (
	"fmt"
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

func printResized(a *app.App, name string, before, capacity int, kept bool) error {
	idle, stay := resizeLinger, "forgotten when idle for "+text.Human(resizeLinger)+", unless --keep is given"
	if kept {
		idle, stay = berth.Forever, "kept for good"
	}
	says := fmt.Sprintf("%s: capacity %d", text.Plain(name), capacity)
	switch {
	case before == 0:
		says += ", created"
	case before != capacity:
		says += fmt.Sprintf(", was %d", before)
	}
	return app.Told(a, name, resizeDocument{capacity, before, kept, idle}, says+"; "+stay)
}
