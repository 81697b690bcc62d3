package engine

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/clock"
)

// Between the record of an end and the end of the context there is a moment, in
// which a process that was stopped may come back and ask.
func TestAContextThatIsAskedForHasEndedWhereTheHoldHas(t *testing.T) {
	h := &Hold{e: &Engine{clock: clock.New()}, c: &Claim{m: machine{phase: ended, end: end{err: berth.ErrLost}}}}
	h.ctx, h.cancel = context.WithCancelCause(t.Context())
	require.ErrorIs(t, context.Cause(h.Context()), berth.ErrLost)
}
