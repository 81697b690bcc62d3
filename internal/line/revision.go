package line

import (
	"context"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// Revision runs claim_revision, which only reads. An operator's call begins with it: its script is
// told the revision, and refuses a call that another one has overtaken, see [Stale].
func (s *Calls) Revision(ctx context.Context, name string) (int64, error) {
	r, err := s.Run(ctx, s.revision, scriptkit.Bounded, name)
	if err != nil {
		return 0, err
	}
	if r.Status() != statusRevision {
		return 0, Unexpected(name, &r)
	}
	return r.Int(1), r.Err()
}

// Stale reads the reply of a script that has refused an operator's call: stale, the revision of
// what has overtaken the call, its target, and what it has changed.
func Stale(name string, r *scriptkit.Reply) (stale *berth.StaleError, revision int64) {
	return &berth.StaleError{Name: name, Resource: r.Str(2), Changed: r.Str(3)}, r.Int(1)
}
