package exporter

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// alive is a reading that a server has answered.
func alive() *reading { return &reading{began: time.Now(), servers: []server{{address: "one"}}} }

func TestWhoAsksAtTheSameTimeSharesOneReading(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var read atomic.Int64
		e := newExporter(every, within, func(context.Context) *reading {
			read.Add(1)
			r := alive()
			time.Sleep(time.Second)
			return r
		}, func(string) {})
		defer e.close()
		found := make(chan told, 50)
		for range 50 {
			go func() { found <- e.look() }()
		}
		for range 50 {
			require.True(t, (<-found).up())
		}
		require.EqualValues(t, 1, read.Load())

		time.Sleep(every - time.Second - time.Millisecond)
		require.True(t, e.look().up())
		require.EqualValues(t, 1, read.Load(), "it is not too old yet")
		time.Sleep(time.Millisecond)
		e.look()
		require.EqualValues(t, 2, read.Load())
	})
}

// TestWhoHasWaitedForAReadingIsToldIt although somebody else begins the next one before whoever has waited looks.
func TestWhoHasWaitedForAReadingIsToldIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const long = time.Second
		var began int
		var e *exporter
		e = newExporter(long, within, func(context.Context) *reading {
			began++
			r := alive()
			r.failed("names", fmt.Errorf("reading %d", began))
			time.Sleep(long)
			return r
		}, func(string) { e.begin() })
		defer e.close()
		for i := range 3 {
			require.NotNil(t, e.look().reading)
			synctest.Wait()
			require.Equal(t, i+2, began, "the next one has begun")
		}
	})
}

func TestAReadingThatHangsDelaysNobodyForLongAndOldFiguresAreNotTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hangs := make(chan struct{})
		var read int
		e := newExporter(every, within, func(context.Context) *reading {
			if read++; read == 2 {
				<-hangs // heeds no ctx
			}
			return alive()
		}, func(string) {})
		defer e.close()
		require.True(t, e.look().up())
		time.Sleep(every)
		for range 3 {
			began := time.Now()
			require.Nil(t, e.look().reading)
			require.Equal(t, within, time.Since(began))
		}
		require.Equal(t, map[string]float64{"up": 0, `exporter_readings_total{outcome="answered"}`: 1, `exporter_readings_total{outcome="silent"}`: 0}, scrape(t, e))
		close(hangs)
		synctest.Wait()
		require.True(t, e.look().up())
		require.Equal(t, 2, read)
	})
}

func TestWhatWasReadUntilTheTimeWasOverIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newExporter(every, within, func(ctx context.Context) *reading {
			<-ctx.Done()
			time.Sleep(within / 20)
			return alive()
		}, func(string) {})
		defer e.close()
		for range 3 {
			began := time.Now()
			told := e.look()
			require.NotNil(t, told.reading)
			require.True(t, told.up())
			require.Less(t, time.Since(began), within)
			time.Sleep(every)
		}
	})
}

func TestAProblemIsSaidOnceUntilItChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var said []string
		next := []string{"", "a", "a", "b", "", "b"}
		e := newExporter(0, within, func(context.Context) *reading {
			r := alive()
			if next[0] != "" {
				r.failed("names", nil, errors.New(next[0]), errors.New("another"))
			}
			next = next[1:]
			return r
		}, func(problem string) { said = append(said, problem) })
		defer e.close()
		for range 6 {
			e.look()
		}
		require.Equal(t, []string{"names: a (and 1 more)", "names: b (and 1 more)", "names: b (and 1 more)"}, said)
	})
}
