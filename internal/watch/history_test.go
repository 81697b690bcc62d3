package watch

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/inspect"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func lookAt(at time.Duration, held int, claims ...string) *inspect.Look {
	l := &inspect.Look{Name: berth.Name{At: noon.Add(at), Held: held, Capacity: 3}}
	for _, id := range claims {
		l.Holds = append(l.Holds, inspect.Hold{Holder: berth.Holder{
			ID: id, Label: "of " + id, Granted: noon, Meta: map[string]string{"long": "text"},
		}})
	}
	return l
}

// A page may stay open for days: what is kept of the counts is bounded, spans all the time, and has the newest.
func TestTheHistoryOfDaysIsBoundedAndWhole(t *testing.T) {
	var s seen
	var n Name
	const last = 3 * 24 * 3600
	for second := range last + 1 {
		n = s.add(lookAt(time.Duration(second)*time.Second, second))
	}
	require.Less(t, len(n.History), samplesMost)
	require.Greater(t, len(n.History), samplesMost/3)
	require.Equal(t, noon, n.Since)
	require.Equal(t, Sample{noon, 0, 0, 3}, n.History[0])
	require.WithinDuration(t, n.At, n.History[len(n.History)-1].At, last*time.Second/(samplesMost/3))
	least, most := time.Duration(last)*time.Second, time.Duration(0)
	for i := 1; i < len(n.History); i++ {
		gap := n.History[i].At.Sub(n.History[i-1].At)
		least, most = min(least, gap), max(most, gap)
	}
	require.Positive(t, least)
	require.LessOrEqual(t, most, 3*least, "all the time is seen as closely")
}

func TestWhatALookReturnedIsNotWrittenToAgain(t *testing.T) {
	var s seen
	first := s.add(lookAt(0, 1, "a"))
	kept := fmt.Sprint(first)
	s.add(lookAt(time.Second, 2, "a", "b"))
	s.add(lookAt(2*time.Second, 1, "b"))
	require.Equal(t, kept, fmt.Sprint(first))
}

// Of a name with more holds than a look has, one that is not there may be among the others.
func TestAHoldIsSeenFromItsGrantToItsEnd(t *testing.T) {
	var s seen
	s.add(lookAt(time.Second, 1, "a"))
	s.add(lookAt(2*time.Second, 2, "a", "b"))
	l := lookAt(2500*time.Millisecond, 2, "b")
	l.HoldsLeft = 1
	require.False(t, s.add(l).Spans[0].Ended, "it was not read")
	n := s.add(lookAt(3*time.Second, 1, "b"))
	require.Equal(t, []Span{
		{Holder: berth.Holder{ID: "a", Label: "of a", Granted: noon}, To: noon.Add(2 * time.Second), Ended: true},
		{Holder: berth.Holder{ID: "b", Label: "of b", Granted: noon}, To: noon.Add(3 * time.Second)},
	}, n.Spans, "without what they were given, of which there may be much")
	require.NotEmpty(t, n.Holds[0].Meta)
}

// A semaphore of many short holds has always some that were not read, so that none is known to have ended.
func TestOfManyHoldsThoseThatWereSeenLongestAgoAreForgotten(t *testing.T) {
	for _, left := range []int{0, 50} {
		var s seen
		for i := range 3 * spansMost {
			l := lookAt(time.Duration(i)*time.Second, 2, "stays", fmt.Sprint("c", i))
			l.HoldsLeft = left
			s.add(l)
		}
		require.LessOrEqual(t, len(s.spans), spansMost)
		require.Contains(t, fmt.Sprint(s.spans), "stays")
		require.Contains(t, fmt.Sprint(s.spans), fmt.Sprint("c", 3*spansMost-1))
	}
}

// After a failover the clock may have gone back: what was seen by the other one is no part of the same picture.
func TestAClockThatGoesBackBeginsAnew(t *testing.T) {
	var s seen
	s.add(lookAt(time.Hour, 1, "a"))
	n := s.add(lookAt(time.Minute, 2, "b"))
	require.Equal(t, noon.Add(time.Minute), n.Since)
	require.Len(t, n.History, 1)
	require.Len(t, n.Spans, 1)
}

// A name that a newer release has written is not one of which nothing is held.
func TestWhatCannotBeReadIsNoSample(t *testing.T) {
	var s seen
	s.add(lookAt(time.Second, 1, "a"))
	l := lookAt(2*time.Second, 0)
	l.Err = errors.New("it is of a newer form")
	n := s.add(l)
	require.Error(t, n.Err)
	require.Len(t, n.History, 1)
	require.False(t, n.Spans[0].Ended)
}
