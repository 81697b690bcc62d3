package run

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/text"
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
		crowd, err := line.crowd(bounded)
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

// heldBy names those that have held for the longest, of the first that a listing
// has; "" where it has none.
func heldBy(listing iter.Seq2[berth.Holder, error]) string {
	var holders []berth.Holder
	for holder, err := range listing {
		if err == nil {
			holders = append(holders, holder)
		}
		if len(holders) == looked {
			break
		}
	}
	slices.SortFunc(holders, func(a, b berth.Holder) int { return cmp.Compare(b.Held, a.Held) })
	named := make([]string, 0, shown)
	for _, holder := range holders[:min(shown, len(holders))] {
		named = append(named, fmt.Sprintf("%s for %s", holderName(holder), text.Human(holder.Held)))
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
func holderName(h berth.Holder) string { return text.Plain(cmp.Or(h.Label, h.ID)) }
