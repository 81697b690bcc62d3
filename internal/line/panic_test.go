package line_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/guard"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// What panics on the answer to a sweep is here the observer that hears what was swept.
func TestAPanicOnAnAnswerIsAnErrorOfACallThatMayHaveRun(t *testing.T) {
	onServer(t, func(t *testing.T, a *process) {
		a.ask("dead", "dead.1")
		a.ask("dead", "dead.2")
		time.Sleep(lease)
		a.told = func() {
			if a.events[len(a.events)-1].Kind == observe.Swept {
				panic(guard.Meant("no such index"))
			}
		}
		_, err := a.SweepAll(context.Background(), name)
		require.ErrorContains(t, err, "the reading of sweep panicked: no such index")
		require.True(t, scriptkit.MaybeRan(err))
		require.Equal(t, observe.Panicked, a.events[len(a.events)-1].Kind)
		_, err = a.SweepAll(context.Background(), name)
		require.NoError(t, err)
	})
}
