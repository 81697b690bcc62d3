package observe_test

import (
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
