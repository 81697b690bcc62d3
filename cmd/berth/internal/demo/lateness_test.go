package demo

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// slowly is a director that takes its time over the first report.
type slowly struct {
	takes time.Duration
	last  report
}

func (s *slowly) Write(p []byte) (int, error) {
	time.Sleep(s.takes)
	s.takes = 0
	return len(p), json.Unmarshal(p, &s.last)
}

// TestAWorkerIsLateWhereverItStandsStill has a worker stand still in the middle of a report.
// There a busy machine takes the processor away, for the report wakes its reader.
func TestAWorkerIsLateWhereverItStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &slowly{takes: time.Second}
		w := &worker{out: json.NewEncoder(out)}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		w.live(ctx)
		require.Equal(t, time.Second-aliveEvery, out.last.Late)
	})
}

func TestLatenessIsMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lateness
		l.stop() // nothing was started
		require.Zero(t, l.worst())
		l.start()
		time.Sleep(time.Second)
		l.stop()
		require.Zero(t, l.worst(), "each beat was on time")
		l.beat(time.Millisecond)
		time.Sleep(3 * time.Millisecond)
		l.beat(time.Millisecond)
		require.Equal(t, 2*time.Millisecond, l.worst())
	})
}
