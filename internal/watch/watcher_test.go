package watch

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth/internal/guard"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/observe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// source is what a topic is read from.
type source struct {
	mu    sync.Mutex
	reads int
	takes time.Duration
	err   error
}

// set has what follows take so long, or fail.
func (s *source) set(takes time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takes, s.err = takes, err
}

// count is how often it was read.
func (s *source) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads
}

func (s *source) read(ctx context.Context) (int, error) {
	s.mu.Lock()
	s.reads++
	reads, takes, err := s.reads, s.takes, s.err
	s.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
	}
	return reads, err
}

// inBubble runs a test in virtual time.
func inBubble(t *testing.T, test func(t *testing.T, w *Watcher)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := New(nil, nil)
		defer w.Close()
		test(t, w)
	})
}

func advance(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestTheNextReadingBeginsAPeriodAfterTheLastOneBeganAndNeverBesideIt(t *testing.T) {
	inBubble(t, func(t *testing.T, w *Watcher) {
		s := source{takes: 700 * time.Millisecond}
		f := look(w, "a", sort{every: time.Second}, nil, s.read)
		defer f.Close()
		advance(2800 * time.Millisecond)
		require.Equal(t, 3, s.count())
		s.set(3*time.Second, nil)
		advance(500 * time.Millisecond) // the fourth begins at 3 s
		require.Equal(t, 4, s.count())
		advance(2800 * time.Millisecond) // and ends at 6 s: the fifth begins at once
		require.Equal(t, 5, s.count())
		last, _ := f.Last()
		require.Equal(t, 4, last.Value)
		require.Equal(t, 100*time.Millisecond, time.Since(last.At))
	})
}

func TestWhatIsAskedForAnewBeginsAtOnceButNeverBesideAnotherReading(t *testing.T) {
	inBubble(t, func(t *testing.T, w *Watcher) {
		s := source{takes: 100 * time.Millisecond}
		f := look(w, "a", sort{every: time.Minute}, nil, s.read)
		defer f.Close()
		advance(time.Second)
		begun := w.Begun()
		for range 10 {
			f.Anew(begun)
		}
		advance(50 * time.Millisecond)
		require.Equal(t, 2, s.count(), "at once")
		f.Anew(begun)
		advance(20 * time.Second)
		require.Equal(t, 2, s.count(), "one has begun since")
		last, _ := f.Last()
		require.Greater(t, last.Turn, begun)

		f.Anew(w.Begun())
		advance(50 * time.Millisecond)
		f.Anew(w.Begun()) // while the third is under way
		advance(40 * time.Millisecond)
		require.Equal(t, 3, s.count())
		advance(20 * time.Millisecond)
		require.Equal(t, 4, s.count())
		advance(59 * time.Second)
		require.Equal(t, 4, s.count(), "the next one comes a period after the last one")
		advance(2 * time.Second)
		require.Equal(t, 5, s.count())
	})
}

func TestWhatIsReadOnceIsRememberedForAPeriod(t *testing.T) {
	inBubble(t, func(t *testing.T, w *Watcher) {
		s := source{takes: 100 * time.Millisecond, err: errors.New("it is away")}
		read := func() int {
			f := look(w, "a", sort{every: 2 * time.Second, once: true}, nil, s.read)
			defer f.Close()
			last := testkit.Must(f.First(t.Context())).In(t)
			require.Equal(t, s.err, last.Err)
			return s.count()
		}
		for range 3 {
			require.Equal(t, 1, read(), "an error, too")
		}
		advance(2 * time.Second)
		require.Empty(t, w.topics)
		s.set(100*time.Millisecond, nil)
		looks := look(w, "a", sort{every: 2 * time.Second, once: true}, nil, s.read)
		defer looks.Close()
		require.Equal(t, 2, read())
		advance(time.Minute)
		last, _ := looks.Last()
		require.Equal(t, []int{2, 2}, []int{last.Value, s.count()}, "it is not read anew for who looks")
		require.Equal(t, 3, read())
	})
}

func TestWhatNobodyLooksAtIsReadNoMore(t *testing.T) {
	inBubble(t, func(t *testing.T, w *Watcher) {
		var s source
		f, g := look(w, "a", sort{every: time.Second}, nil, s.read), look(w, "a", sort{every: time.Second}, nil, s.read)
		f.Close()
		f.Close()
		advance(20 * time.Second)
		require.Equal(t, 21, s.count(), "another one looks yet")
		g.Close()
		advance(unlooked + 2*time.Second)
		n := s.count()
		advance(time.Hour)
		require.Equal(t, n, s.count())
		require.LessOrEqual(t, n, 21+int(unlooked/time.Second)+1)
		require.Empty(t, w.topics)
	})
}

func TestAPageThatIsOpenedLooksTwiceAndGoesOnWithTheSameTopic(t *testing.T) {
	inBubble(t, func(t *testing.T, w *Watcher) {
		var s source
		f := look(w, "a", sort{every: time.Second}, nil, s.read)
		first := testkit.Must(f.First(t.Context())).In(t)
		require.Equal(t, 1, first.Value)
		f.Close()
		advance(unlooked - time.Second)
		defer look(w, "a", sort{every: time.Second}, nil, func(context.Context) (int, error) { panic("a second topic") }).Close()
		n := s.count()
		advance(3 * time.Second)
		require.Equal(t, n+3, s.count())
	})
}

func TestAReadingThatFailsLeavesTheLastOneStanding(t *testing.T) {
	for what, fails := range map[string]func() error{
		"an error": func() error { return errors.New("it is away") },
		"a panic":  func() error { panic(guard.Meant("it is away")) },
	} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *Watcher) {
				var told []any
				w.tells = func(e observe.Event) { told = append(told, e.Kind, e.Detail) }
				reads := 0
				f := look(w, "gpu", sort{every: time.Second}, nil, func(context.Context) (int, error) {
					if reads++; reads == 2 {
						return 0, fails()
					}
					return reads, nil
				})
				defer f.Close()
				advance(500 * time.Millisecond)
				before, news := f.Last()
				advance(time.Second)
				<-news
				now, _ := f.Last()
				require.ErrorContains(t, now.Err, "it is away")
				require.Equal(t, []any{1, before.At, before.Seq + 1}, []any{now.Value, now.At, now.Seq})
				if what == "a panic" {
					require.Equal(t, []any{observe.Panicked, "the reading of gpu"}, told)
				}
				advance(time.Second)
				now, _ = f.Last()
				require.NoError(t, now.Err)
				require.Equal(t, []int{3, 3}, []int{now.Value, reads}, "it does not spin")
			})
		})
	}
}

// Of names there are only so many, and of walks; neither takes the room of the other, nor that of what all share.
func TestThereAreOnlySoManyTopics(t *testing.T) {
	inBubble(t, func(t *testing.T, w *Watcher) {
		var s source
		first := func(key string, of sort, read func(context.Context) (int, error)) error {
			f := look(w, key, of, nil, read)
			t.Cleanup(f.Close)
			last := testkit.Must(f.First(t.Context())).In(t)
			return last.Err
		}
		never := func(context.Context) (int, error) {
			panic("it is read")
		}
		for i := range walksMost {
			require.NoError(t, first(strconv.Itoa(-1-i), sort{every: time.Second, walks: true}, s.read))
		}
		require.ErrorIs(t, first("one more walk", sort{every: time.Second, walks: true}, never), ErrMany)
		for i := range walksMost {
			require.NoError(t, first("a page "+strconv.Itoa(i), sort{every: time.Second, walks: true, once: true}, s.read))
		}
		require.ErrorIs(t, first("one more page", sort{every: time.Second, walks: true, once: true}, never), ErrMany)
		for i := range most {
			require.NoError(t, first(strconv.Itoa(i), sort{every: time.Second}, s.read))
		}
		require.ErrorIs(t, first("one more", sort{every: time.Second}, never), ErrMany)
		require.NoError(t, first("overview", sort{every: time.Second, shared: true}, s.read))
		advance(5 * time.Second)
	})
}

// Whoever may look can open any number of pages, of names that do not exist: others find theirs all the same.
func TestATopicAtWhichNobodyLooksGivesWay(t *testing.T) {
	inBubble(t, func(t *testing.T, w *Watcher) {
		var s [2 * most]source
		for i := range s {
			f := look(w, strconv.Itoa(i), sort{every: time.Hour}, nil, s[i].read)
			advance(time.Millisecond)
			f.Close()
		}
		require.Len(t, w.topics, most)
		require.Nil(t, w.topics["0"], "the one that was left longest ago")
		f := look(w, strconv.Itoa(most), sort{every: time.Hour}, nil, s[0].read)
		defer f.Close()
		last := testkit.Must(f.First(t.Context())).In(t)
		require.NoError(t, last.Err)
	})
}

// A walk takes long, and so does a server that does not answer. Names do not wait behind them.
func TestWhatTakesLongHoldsUpNoName(t *testing.T) {
	inBubble(t, func(t *testing.T, w *Watcher) {
		var s [10]source
		away := errors.New("it is away")
		for i := range s {
			s[i].set(10*time.Second, away)
			defer look(w, strconv.Itoa(i), sort{every: time.Second, walks: i%2 == 0}, nil, s[i].read).Close()
		}
		advance(time.Minute) // by now all have failed
		var name source
		defer look(w, "gpu", sort{every: time.Second}, nil, name.read).Close()
		advance(10*time.Second + 500*time.Millisecond)
		require.Equal(t, 11, name.count())
	})
}

func TestOnlySoManyAreReadAtTheSameTime(t *testing.T) {
	inBubble(t, func(t *testing.T, w *Watcher) {
		var s [3 * atOnce]source
		for i := range s {
			s[i].takes = time.Second
			defer look(w, strconv.Itoa(i), sort{every: time.Minute}, nil, s[i].read).Close()
		}
		for n := 1; n <= 3; n++ {
			advance(500 * time.Millisecond)
			reads := 0
			for i := range s {
				reads += s[i].count()
			}
			require.Equal(t, n*atOnce, reads)
			advance(500 * time.Millisecond)
		}
	})
}

func TestWhoWaitsIsEndedByItsContextAndByClose(t *testing.T) {
	inBubble(t, func(t *testing.T, w *Watcher) {
		s := source{takes: time.Hour}
		f := look(w, "a", sort{every: time.Second}, nil, s.read)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		require.ErrorIs(t, testkit.Second(f.First(ctx)), context.DeadlineExceeded)
		w.Close()
		last := testkit.Must(f.First(t.Context())).In(t)
		require.ErrorIs(t, last.Err, ErrClosed)
		late := look(w, "b", sort{every: time.Second}, nil, s.read)
		last = testkit.Must(late.First(t.Context())).In(t)
		require.ErrorIs(t, last.Err, ErrClosed)
		f.Close()
		late.Close()
		w.Close()
	})
}

func TestATopicThatCannotBeHasItsErrorAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, w *Watcher) {
		no := errors.New("there is none of this kind")
		f := look(w, "a", sort{every: time.Second}, no, (&source{}).read)
		defer f.Close()
		last := testkit.Must(f.First(t.Context())).In(t)
		require.ErrorIs(t, last.Err, no)
		require.Empty(t, w.topics)
	})
}
