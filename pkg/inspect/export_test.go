package inspect

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
)

// Guarded explains one reading, of which nothing harmful may come.
func (r *Reader) Guarded(t *testing.T, kind keyspace.Kind, name, claim string) Explanation {
	t.Helper()
	s, err := r.snapshot(context.Background(), kind, name, claim)
	require.NoError(t, err)
	guarded(t, s, claim)
	return explain(s, claim)
}

// Codes are all there are.
var Codes = []Code{
	Incompatible, Foreign, Unknown, Damaged, Gone, Absent, Holding, Free,
	Silent, Paused, TooHeavy, Ready,
	Own, Over, Full, Locked, Entries, Empty, Taken, Resting, OneHeld, OneResting, OneDamaged, OneAbsent, Bound, LeavingPool,
	Outranked, Heavier, Behind, LIFO, Drawn,
	Asked, ServerFull, ServerRefuses, OfReplica, Moved, Part,
}

// Quiet explains one reading, and says of which nodes it expects nothing, and what was read.
func (r *Reader) Quiet(ctx context.Context, kind keyspace.Kind, name, claim string) (Explanation, func(node string) bool, string, error) {
	s, err := r.snapshot(ctx, kind, name, claim)
	if err != nil {
		return Explanation{}, nil, "", err
	}
	return explain(s, claim), s.silent, fmt.Sprintf("%+v, the pool %+v, the pause %+v", *s, s.Pool, s.Pause), nil
}

// Known is how many names an Overview remembers.
func Known(o *Overview) int { return len(o.known) }

// Remember has an Overview know so many more names, as if the registry had them and it had read them.
func Remember(o *Overview, names int) {
	for n := range names {
		s := o.know(berth.Ref{Kind: keyspace.Sem, Name: fmt.Sprint("read", n)})
		s.read, s.noted = 1, aged{true, o.clock.Now()}
	}
}
