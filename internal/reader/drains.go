package reader

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/notice"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// mostDrains is how many drains there are at the most; drainTrips is how many pages of about scannedDrains fields the notice
// has at the most for a reader.
const mostDrains, drainTrips, scannedDrains = 100, 10, 1000

// Drains reads the drains that are in force, the oldest first. Partial says that there are more fields than Berth writes. Its
// errors are state.ErrDamaged, and the server's.
func (r *Reader) Drains(ctx context.Context) (page Page[berth.Drain], partial bool, err error) {
	key, cursor := r.space.Notice(), "0"
	if _, long := r.long.letter(key, notice.Label); long {
		return page, true, fmt.Errorf("berth: the notice has a text that is %w: no drain is read for %s", state.ErrDamaged, longFor)
	}
	seen := map[string]bool{} // HSCAN may tell of a field twice
	for range drainTrips {
		var p trip
		scan := p.scan(key, cursor, "[nl]:*", scannedDrains)
		answers, err := r.run.Read(ctx, "notice", scriptkit.From{Primary: r.decide}, p.commands...)
		if err != nil {
			return page, true, err
		}
		p.results = answers.Results
		page.Now, page.Replica = time.UnixMilli(answers.Now), answers.Replica
		var fields []pair
		if fields, cursor = p.scanned(scan, ""); p.err != nil {
			return page, true, p.err
		}
		for _, f := range fields {
			if seen[f.name] {
				continue
			}
			seen[f.name] = true
			told := notice.Read(f.value)
			reason, drains := told.Drains(answers.Now)
			if len(f.value) == 1 {
				r.long.note(key, notice.Label, f.value) // or as little
			}
			drain := berth.Drain{
				DrainTarget: notice.Target(f.name), Reason: reason, Since: time.UnixMilli(min(told.Number, answers.Now)),
			}
			if told.Until > 0 {
				drain.Left = min(state.Millis(told.Until-answers.Now), notice.MostPause)
			}
			switch {
			case told.Damaged:
				page.Found = append(page.Found, Found[berth.Drain]{Err: fmt.Errorf("berth: the drain of %s is %w", drain.DrainTarget, state.ErrDamaged)})
			case drains:
				page.Found = append(page.Found, Found[berth.Drain]{Entry: drain})
			}
		}
		if partial = cursor != "0"; !partial {
			break
		}
	}
	slices.SortFunc(page.Found, func(a, b Found[berth.Drain]) int {
		return cmp.Or(a.Entry.Since.Compare(b.Entry.Since), cmp.Compare(a.Entry.Label+a.Entry.Node, b.Entry.Label+b.Entry.Node))
	})
	if len(page.Found) > mostDrains {
		page.Found, partial = page.Found[:mostDrains], true
	}
	return page, partial, nil
}
