package row

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTurnsCountAsFarAsTheyLieWithinTheSpan(t *testing.T) {
	at := func(ns int64) time.Time { return time.Unix(0, ns) }
	result := tallyTurns([][]turn{
		{
			{Asked: 0, Got: 90, Held: 3},    // over before the span began
			{Asked: 95, Got: 110, Held: 4},  // waited 10 of it within
			{Asked: 115, Got: 120, Held: 5}, // the same worker again: no hand-off
			{Asked: 125, Got: 160, Held: 6}, // after the other one
			{Asked: 170, Got: 230, Held: 7}, // granted after the span: no lock, 30 of it within
			{Asked: 240, Got: 250, Held: 8}, // after the span
			{Asked: 260, Got: 270, Held: 9, Lost: true},
		},
		{
			{Asked: 50, Got: 140, Held: 10},
			{Asked: 150, Got: 210, Lost: true}, // cut off: 50
		},
		{
			{Asked: 100, Got: 205, Lost: true}, // nothing at all: 100
		},
	}, at(100), at(200))
	require.Equal(t, 4, result.locks)
	require.Equal(t, 3, result.handoffs)
	require.Equal(t, []int{3, 1, 0}, result.shares)
	require.Equal(t, []time.Duration{10, 5, 35, 30, 40, 50, 100}, result.waits)
	require.Equal(t, []time.Duration{35, 50, 100}, result.longest)
	require.Equal(t, []time.Duration{4, 5, 6, 10}, result.holds)

	metrics := contestResult{tally: result, span: 2 * time.Second, scripts: 2, trips: 3}.metrics()
	require.Equal(t, map[string]float64{
		"handoffs": 1.5, "locks": 2, "p50": 35e-6, "p99": 100e-6, "max": 100e-6, "longest": 50e-6,
		"share": 0, "starved": 1, "scripts": 2, "trips": 3,
	}, metrics)
}
