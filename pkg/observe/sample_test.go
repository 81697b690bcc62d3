package observe_test

import (
	"fmt"
	"log/slog"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/observe"
)

func sample(t *testing.T, share float64, kinds ...observe.Kind) (observe.Observer, *recorder) {
	t.Helper()
	got := new(recorder)
	o, err := observe.Sample(got, share, kinds...)
	require.NoError(t, err)
	return o, got
}

// claim is the i-th claim id of a node, as xid makes them: they differ in the
// last characters only.
func claim(i int) string { return fmt.Sprintf("5f0c9e6a1b7d2e48.d1k2m3n4p5q6r7s8%04x", i) }

func TestSamplePassesItsShareOfTheClaims(t *testing.T) {
	const claims = 20_000
	for _, share := range []float64{0, 0.01, 0.1, 0.5, 0.9, 1} {
		o, got := sample(t, share, observe.Granted)
		for i := range claims {
			o.Observe(observe.Event{Kind: observe.Granted, Claim: claim(i)})
		}
		// Five standard deviations of a fair draw: the ids are fixed, so the
		// numbers are the same in every run.
		within := 5 * math.Sqrt(claims*share*(1-share))
		require.InDelta(t, claims*share, len(got.events), within, "share %v", share)
	}
}

func TestSamplePassesAllEventsOfAClaimOrNone(t *testing.T) {
	course := []observe.Kind{observe.Queued, observe.Granted, observe.Detached, observe.Released}
	o, got := sample(t, 0.5, course...)
	other, otherGot := sample(t, 0.5, course...)
	for i := range 200 {
		for _, kind := range course {
			e := observe.Event{Kind: kind, Claim: claim(i), Name: fmt.Sprint(kind, i), At: time.Unix(int64(i), 0)}
			o.Observe(e)
			other.Observe(e)
		}
	}
	count := make(map[string]int)
	for _, e := range got.events {
		count[e.Claim]++
	}
	require.Greater(t, len(count), 50)
	require.Less(t, len(count), 150)
	for id, n := range count {
		require.Equal(t, len(course), n, "claim %s", id)
	}
	require.Equal(t, got.events, otherGot.events, "every Sample decides alike")
}

func TestALargerShareHoldsTheClaimsOfASmallerOne(t *testing.T) {
	small, smallGot := sample(t, 0.2, observe.Granted)
	large, largeGot := sample(t, 0.4, observe.Granted)
	for i := range 500 {
		e := observe.Event{Kind: observe.Granted, Claim: claim(i)}
		small.Observe(e)
		large.Observe(e)
	}
	require.NotEmpty(t, smallGot.events)
	require.Subset(t, largeGot.events, smallGot.events)
}

func TestEventsWithoutAClaimAreDecidedOneByOne(t *testing.T) {
	o, got := sample(t, 0.5, observe.Swept)
	const events = 2_000
	for i := range events {
		o.Observe(observe.Event{Kind: observe.Swept, Name: "gpu", At: time.Unix(0, int64(i))})
	}
	require.InDelta(t, events/2, len(got.events), 5*math.Sqrt(events)/2)
}

func TestSampleWithoutKindsThinsOnlyTheDebugOnes(t *testing.T) {
	o, got := sample(t, 0)
	var want []observe.Event
	for _, kind := range observe.Kinds() {
		e := observe.Event{Kind: kind, Claim: claim(1)}
		o.Observe(e)
		if kind.Level() > slog.LevelDebug {
			want = append(want, e)
		}
	}
	require.Equal(t, want, got.events)

	o.Observe(observe.Event{Kind: "of a later release"})
	require.Len(t, got.events, len(want)+1)
}

func TestSampleThinsExactlyTheNamedKinds(t *testing.T) {
	o, got := sample(t, 0, observe.Lost, observe.Granted)
	for _, kind := range observe.Kinds() {
		o.Observe(observe.Event{Kind: kind})
	}
	require.Len(t, got.events, len(observe.Kinds())-2)
	for _, e := range got.events {
		require.NotContains(t, []observe.Kind{observe.Lost, observe.Granted}, e.Kind)
	}
}

func TestSampleRefusesBadArguments(t *testing.T) {
	for _, test := range []struct {
		to    observe.Observer
		share float64
		kinds []observe.Kind
		field string
	}{
		{nil, 0.5, nil, "observer"},
		{new(recorder), -0.1, nil, "share"},
		{new(recorder), 10, nil, "share"}, // a percentage
		{new(recorder), math.NaN(), nil, "share"},
		{new(recorder), math.Inf(1), nil, "share"},
		{new(recorder), 0.5, []observe.Kind{observe.Lost, "lose"}, "kinds"},
	} {
		o, err := observe.Sample(test.to, test.share, test.kinds...)
		require.Nil(t, o)
		require.ErrorIs(t, err, berth.ErrInvalidConfig)
		var refused *berth.ConfigError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, test.field, refused.Field)
	}
}
