package inspect

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/berth-go/berth"
)

// ErrDrainsUnreadable is the error of Drains for a user that lacks the right: whether there are drains is not known.
var ErrDrainsUnreadable = errors.New("berth: drains are not readable (needs +hscan)")

// Drains reads the drains that are in force, the oldest first, at most 100: those that have been called and have neither ended by themselves
// nor been stopped. Processes that have heard of a drain keep to it though the server has lost it since; of that one, Drains does not
// know. Nor does it know whether a process that a drain is of is still there. A user that may not call HSCAN gets
// ErrDrainsUnreadable.
func (r *Reader) Drains(ctx context.Context) (page Page[berth.Drain], err error) {
	found, partial, err := r.read.Drains(ctx)
	switch {
	case err != nil && strings.Contains(err.Error(), "'hscan'"):
		return page, fmt.Errorf("%w: %w", ErrDrainsUnreadable, err)
	case err != nil:
		return page, err
	}
	page = Page[berth.Drain]{Partial: partial, At: found.Now, Replica: found.Replica}
	for _, f := range found.Found {
		if f.Err != nil {
			page.Problems = append(page.Problems, f.Err)
			continue
		}
		page.Items = append(page.Items, f.Entry)
	}
	return page, nil
}
