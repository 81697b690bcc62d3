package line_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/engine"
)

// trialled stands for a primitive: it notes which of its calls are made, and
// fails the one that it is told to.
type trialled struct {
	engine.Scripts
	t     *testing.T
	calls []string
	fails string
}

var errRefused = errors.New("NOPERM")

func (s *trialled) made(call string, c *engine.Claim) error {
	require.Equal(s.t, "berth check a", c.Name, "nobody's name")
	require.Equal(s.t, "a", c.Record.Node)
	require.False(s.t, c.MayWait)
	s.calls = append(s.calls, call)
	if call == s.fails {
		return errRefused
	}
	return nil
}

func (s *trialled) Acquire(_ context.Context, c *engine.Claim) (engine.Answer, error) {
	return engine.Answer{}, s.made("acquire", c)
}

func (s *trialled) Beat(_ context.Context, name string, _ engine.Mode, claims []*engine.Claim) (engine.Round, error) {
	require.Len(s.t, claims, 1)
	require.Equal(s.t, claims[0].Name, name)
	return engine.Round{}, s.made("beat", claims[0])
}

func (s *trialled) Release(_ context.Context, c *engine.Claim, stays time.Duration) (engine.Parting, error) {
	require.Zero(s.t, stays, "nothing is left behind")
	return engine.Parting{}, s.made("release", c)
}

func TestATrialMakesTheCallsOfOneHoldUpToTheFirstThatFails(t *testing.T) {
	onServer(t, func(t *testing.T, a *node) {
		all := []string{"acquire", "beat", "release", "acquire", "beat", "release"}
		s := &trialled{t: t}
		require.NoError(t, a.Trial(context.Background(), s, lease, "label"))
		require.Equal(t, all, s.calls)
		for i, call := range all[:3] {
			s := &trialled{t: t, fails: call}
			require.ErrorIs(t, a.Trial(context.Background(), s, lease, "label"), errRefused)
			require.Equal(t, all[:i+1], s.calls)
		}
	})
}
