package clock

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// machine is a computer that a test can suspend.
type machine struct {
	mu        sync.Mutex
	since     time.Duration // monotonic, since the clock was made
	stepped   time.Duration // by which the wall clock was set
	suspended time.Duration
	missed    time.Duration // by which a reading of the meter is too small
	asked     int           // how often the meter was read
}

func (m *machine) clock() *suspendable {
	elapsed := func() (since, shift time.Duration) {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.since, m.suspended + m.stepped
	}
	read := func() time.Duration {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.asked++
		return 5*time.Hour + m.suspended - m.missed
	}
	clock := newSuspendable(elapsed, &meter{atMost: read, atLeast: read})
	m.asked = 0
	return clock
}

func (m *machine) run(d time.Duration)     { m.change(&m.since, d) }
func (m *machine) suspend(d time.Duration) { m.change(&m.suspended, d) }

func (m *machine) change(field *time.Duration, d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	*field += d
}

func TestClockIsExactInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := New()
		require.Zero(t, clock.Now())
		for i := range 1000 {
			time.Sleep(1001 * time.Microsecond)
			require.Equal(t, time.Duration(i+1)*1001*time.Microsecond, clock.Now())
		}
		time.Sleep(100 * 24 * time.Hour)
		require.Equal(t, 100*24*time.Hour+1001*time.Millisecond, clock.Now())
	})
}

func TestClockRunsOnInRealTime(t *testing.T) {
	before := time.Now()
	clock := New()
	last := clock.Now()
	require.GreaterOrEqual(t, last, time.Duration(0))
	for range 10_000 {
		now := clock.Now()
		require.GreaterOrEqual(t, now, last)
		last = now
	}
	require.LessOrEqual(t, last, time.Since(before))
	require.Positive(t, last)
}

func TestWallAndMonotonicClockMoveTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		elapsed := elapsedSince(time.Now())
		time.Sleep(time.Hour)
		since, shift := elapsed()
		require.Equal(t, time.Hour, since)
		require.Zero(t, shift)
	})
}

func TestTimeSuspendedCounts(t *testing.T) {
	var m machine
	clock := m.clock()
	require.Zero(t, clock.Now(), "what was before the clock does not count")

	m.run(2 * time.Second)
	m.suspend(time.Hour)
	require.Equal(t, time.Hour+2*time.Second, clock.Now())

	m.run(time.Second)
	require.Equal(t, time.Hour+3*time.Second, clock.Now())

	m.suspend(time.Millisecond)
	require.Equal(t, time.Hour+3001*time.Millisecond, clock.Now())
}

func TestLessThanAMillisecondSuspendedCountsAsNothing(t *testing.T) {
	var m machine
	clock := m.clock()
	m.suspend(time.Millisecond - 1)
	require.Zero(t, clock.Now())
	m.suspend(1)
	require.Zero(t, clock.Now(), "the wall clock moved too little since to look again")
	m.suspend(time.Millisecond / 2)
	require.Equal(t, 1500*time.Microsecond, clock.Now(), "together they count")
}

func TestTheMeterIsAskedOnlyAfterTheWallClockMoved(t *testing.T) {
	var m machine
	clock := m.clock()
	for range 10 {
		m.run(time.Second)
		clock.Now()
	}
	require.Zero(t, m.asked)

	m.suspend(time.Minute)
	clock.Now()
	clock.Now()
	require.Equal(t, 1, m.asked)
}

func TestSettingTheWallClockMovesNothing(t *testing.T) {
	var m machine
	clock := m.clock()
	for _, step := range []time.Duration{time.Hour, -3 * time.Hour, time.Millisecond} {
		m.change(&m.stepped, step)
		m.run(time.Second)
		clock.Now()
	}
	require.Equal(t, 3*time.Second, clock.Now())

	m.suspend(time.Minute)
	require.Equal(t, time.Minute+3*time.Second, clock.Now(), "and hides no suspension")
}

func TestAReadingThatIsTooSmallNeverTurnsTheClockBack(t *testing.T) {
	var m machine
	clock := m.clock()
	m.suspend(time.Minute)
	require.Equal(t, time.Minute, clock.Now())

	m.missed = 20 * time.Millisecond // the process paused between two readings
	m.suspend(5 * time.Millisecond)
	require.Equal(t, time.Minute, clock.Now())

	m.missed = 0
	m.suspend(5 * time.Millisecond)
	require.Equal(t, time.Minute+10*time.Millisecond, clock.Now())
}

func TestAPauseWhileTheClockIsMadeHidesNoSuspension(t *testing.T) {
	pauses := []time.Duration{20 * time.Millisecond, 0, 30 * time.Millisecond}
	suspended := time.Duration(0)
	m := meter{
		atMost: func() time.Duration {
			pause := pauses[0]
			pauses = pauses[1:]
			return pause
		},
		atLeast: func() time.Duration { return suspended },
	}
	clock := newSuspendable(func() (since, shift time.Duration) { return 0, suspended }, &m)
	suspended = 7 * time.Millisecond
	require.Equal(t, 7*time.Millisecond, clock.Now())
}

func TestWithoutAMeterTheClockOnlyRuns(t *testing.T) {
	require.Nil(t, newSuspendable(elapsedSince(time.Now()), nil))
	synctest.Test(t, func(t *testing.T) {
		clock := running{time.Now()}
		time.Sleep(time.Minute)
		require.Equal(t, time.Minute, clock.Now())
	})
}

func TestSystemMeterBoundsTheTruth(t *testing.T) {
	m := systemMeter()
	if m == nil {
		t.Log("this system does not tell how long it was suspended")
		return
	}
	for range 1000 {
		atLeast := m.atLeast()
		require.LessOrEqual(t, atLeast, m.atMost())
	}
	require.GreaterOrEqual(t, m.atMost(), time.Duration(0))
}

func TestConcurrentCallersSeeEverySuspension(t *testing.T) {
	var m machine
	clock := m.clock()
	const steps = 1000
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			last := time.Duration(0)
			for last < steps*2*time.Millisecond {
				now := clock.Now()
				if now < last {
					t.Errorf("the clock went back from %s to %s", last, now)
					return
				}
				last = now
			}
		})
	}
	for i := range steps {
		m.suspend(2 * time.Millisecond)
		require.Equal(t, time.Duration(i+1)*2*time.Millisecond, clock.Now())
	}
	callers.Wait()
}

func BenchmarkNow(b *testing.B) {
	clock := New()
	for b.Loop() {
		clock.Now()
	}
}

// BenchmarkNowAfterTheWallClockMoved is what one call costs that has to ask.
func BenchmarkNowAfterTheWallClockMoved(b *testing.B) {
	shift := time.Duration(0)
	clock := newSuspendable(func() (time.Duration, time.Duration) {
		shift += time.Second
		return 0, shift
	}, systemMeter())
	if clock == nil {
		b.Log("this system does not tell how long it was suspended")
		return
	}
	for b.Loop() {
		clock.Now()
	}
}
