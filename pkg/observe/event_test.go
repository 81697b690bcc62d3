package observe_test

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/observe"
)

// recorder keeps what it is told.
type recorder struct{ events []observe.Event }

func (r *recorder) Observe(e observe.Event) { r.events = append(r.events, e) }

func TestFuncIsCalledAndANilOneIsNot(t *testing.T) {
	var got observe.Event
	observe.Func(func(e observe.Event) { got = e }).Observe(observe.Event{Name: "gpu"})
	require.Equal(t, "gpu", got.Name)

	require.NotPanics(t, func() { observe.Func(nil).Observe(observe.Event{}) })
}

func TestMultiTellsAllInTheirOrder(t *testing.T) {
	var order []string
	note := func(who string) observe.Observer {
		return observe.Func(func(e observe.Event) { order = append(order, who+" "+e.Name) })
	}
	list := []observe.Observer{note("first"), nil, note("second"), observe.Multi(nil, note("third"))}
	o := observe.Multi(list...)
	list[0] = nil // the slice is its caller's
	o.Observe(observe.Event{Name: "gpu"})
	require.Equal(t, []string{"first gpu", "second gpu", "third gpu"}, order)
}

func TestMultiLeavesOutWhatDoesNothing(t *testing.T) {
	only := new(recorder)
	require.Same(t, only, observe.Multi(nil, only, observe.Slog(nil), observe.Multi()))

	for _, nothing := range []observe.Observer{observe.Multi(), observe.Multi(nil, nil), observe.Slog(nil)} {
		require.NotNil(t, nothing)
		require.NotPanics(t, func() { nothing.Observe(observe.Event{}) })
	}
}

func TestTheSliceOfTheKindsIsTheCallers(t *testing.T) {
	observe.Kinds()[0] = "scribbled over"
	require.Equal(t, observe.Queued, observe.Kinds()[0])
}

// Sample thins what is debug, so whatever a caller or an operator must not miss
// has to be above it.
func TestWhatGoesWrongIsAboveDebug(t *testing.T) {
	for _, kind := range []observe.Kind{
		observe.TimedOut, observe.AttemptsUsedUp, observe.Failed, observe.Deadlock,
		observe.Lost, observe.Expired, observe.Unavailable, observe.Deaf, observe.ReleaseFailed,
		observe.CleanupFailed, observe.HeldLong, observe.CapacityDiffers, observe.Requeued,
		observe.Flushed, observe.ForceReleased, observe.ReleasedByOther, observe.Restored,
		observe.NodeReplaced, observe.OpenFailed, observe.RefreshFailed, observe.Unhealthy,
	} {
		require.Greater(t, kind.Level(), slog.LevelDebug, "%s", kind)
	}
	require.Equal(t, slog.LevelInfo, observe.Kind("of a later release").Level())
}

func TestSomeKindsEndAnAcquire(t *testing.T) {
	t.Parallel()
	var ends []observe.Kind
	for _, kind := range observe.Kinds() {
		if kind.EndsAcquire() {
			ends = append(ends, kind)
		}
	}
	require.ElementsMatch(t, []observe.Kind{
		observe.Granted, observe.Reentered, observe.Refused, observe.TimedOut, observe.Cancelled,
		observe.AttemptsUsedUp, observe.Deadlock, observe.Failed,
	}, ends)
	require.False(t, observe.Kind("unknown").EndsAcquire())
}
