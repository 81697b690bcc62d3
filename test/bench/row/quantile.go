package row

import (
	"math"
	"slices"
	"time"
)

// quantile returns the value at or below which a share q of the values lie (nearest
// rank), and 0 for none. It sorts them.
func quantile(values []time.Duration, q float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	rank := int(math.Ceil(q * float64(len(values))))
	return values[max(rank, 1)-1]
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
