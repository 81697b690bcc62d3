package once_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe/measure"
	"github.com/berth-go/berth/pkg/once"
)

// What runs is counted as of "once", and what the lock of a run does as of "lock".
func TestAMeterCountsRunsByKindAndTheirLockApart(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		histograms := make(map[string]int)
		meter, err := measure.New(measure.Options{NameClass: measure.Collapse}, func(in measure.Instrument, values []string) measure.Record {
			histograms[in.Name+" "+strings.Join(values, " ")]++
			return func(_ context.Context, _ float64) {}
		})
		require.NoError(t, err)
		n, single := w.node(node.Config{Observer: meter}), once.Config{Every: hour, Attempts: 1}
		n.ran(single, nil)
		w.Until(hour)
		n.ran(single, errMine)
		w.Until(2 * hour)
		n.ran(single, nil)

		numbers := make(map[string]int64)
		meter.Collect(func(in measure.Instrument, values []string, value int64) {
			numbers[in.Name+" "+strings.Join(values, " ")] = value
		})
		for series, value := range map[string]int64{
			"berth.events once digest ran":         2,
			"berth.events once digest run_failed":  1,
			"berth.events once digest missed":      1,
			"berth.acquires lock digest granted":   3,
			"berth.hold_ends lock digest released": 3,
			"berth.held lock digest":               0,
		} {
			require.Equal(t, value, numbers[series], "%s of %v", series, numbers)
		}
		for series := range numbers {
			require.False(t, strings.Contains(series, " once ") && !strings.HasPrefix(series, "berth.events "), series)
		}
		require.Equal(t, map[string]int{"berth.wait_time lock digest": 1, "berth.hold_time lock digest": 1}, histograms)
	})
}
