package run

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

const (
	// firstTold is after how long a wait is told of. Then it is told ever more
	// seldom: each time after twice as long, up to seldom.
	firstTold = 5 * time.Second
	seldom    = time.Hour

	// looked is how many holders are looked at, shown how many are named.
	looked = 100
	shown  = 3
)

// tellWait says for how long a claim waits and who is in its way, until ctx ends.
func tellWait(ctx context.Context, since time.Time, line *spot, say func(text string)) {
	for next := firstTold; ; next = min(2*next, seldom) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(next):
		}
		says := text.Human(time.Since(since))
		bounded, stop := context.WithTimeout(ctx, app.Times.Look)
		crowd, err := line.crowd(bounded, func() {})
		if err == nil {
			says += " (" + crowd + ")"
			if line.holders != nil {
				says += heldBy(line.holders(bounded))
			}
		}
		stop()
		if ctx.Err() == nil {
			say(says)
		}
	}
}

// paused adds to what is said of a name that nothing is granted of it for now; "" where it is not paused.
func paused(n berth.Name) string {
	if n.Pause == nil {
		return ""
	}
	return ", " + view.Paused(n.Pause)
}

// lookedAt are the first holders of a name.
func lookedAt(ctx context.Context, read *inspect.Reader, kind keyspace.Kind, name string) []berth.Holder {
	page, _ := read.Holders(ctx, kind, name, "", looked)                                    // where it cannot be read nobody is named
	return slices.DeleteFunc(page.Items, func(h berth.Holder) bool { return h.Node == "" }) // damaged
}

// heldBy names those that have held for the longest; "" where there are none.
func heldBy(holders []berth.Holder) string {
	slices.SortFunc(holders, func(a, b berth.Holder) int { return cmp.Compare(b.Held, a.Held) })
	named := make([]string, 0, shown)
	for _, holder := range holders[:min(shown, len(holders))] {
		named = append(named, fmt.Sprintf("%s for %s", holderName(holder.Label, holder.ID), text.Human(holder.Held)))
	}
	switch {
	case len(holders) == 0:
		return ""
	case len(holders) > shown:
		return ", held by " + strings.Join(named, ", ") + " and others"
	}
	return ", held by " + strings.Join(named, ", ")
}

// holderName is how a holder is named in a line.
func holderName(label, claim string) string { return text.Plain(cmp.Or(label, claim)) }
