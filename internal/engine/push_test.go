package engine

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/clock"
	"github.com/berth-go/berth/internal/wake"
	"github.com/berth-go/berth/pkg/keyspace"
)

// waiter is an engine in which one claim waits, for x.
func waiter() (*Engine, *Claim) {
	e := New(Config{Clock: clock.New(), Kinds: []keyspace.Kind{""}, Scripts: &line6s{}})
	c := &Claim{ID: "n.1", Name: "x", MayWait: true, Record: Record{Wait: 6 * second, Lease: 6 * second, Weight: 1}}
	c.begins(context.Background(), 0, false)
	c.m.phase, c.m.news.secret, c.m.place.left = waiting, "s", 6*second
	e.claims[c.ID] = c
	e.lines[Line{Name: "x"}] = &line{}
	return e, c
}

func TestAPushIsForTheClaimThatItNames(t *testing.T) {
	push := func(word, name, claim string) wake.Message {
		return wake.Message{Word: word, Name: name, Fields: []string{claim, "9", "6000", "r", "s"}}
	}
	synctest.Test(t, func(t *testing.T) {
		e, c := waiter()
		before := c.see()
		for _, m := range []wake.Message{
			{}, {Word: "granted", Name: "x"}, push("granted", "x", "nobody.1"), push("granted", "y", "n.1"), push("a word to come", "x", "n.1"),
		} {
			e.deliver(m)
			require.Equal(t, before, c.see(), "%v", m)
		}
		e.deliver(push("granted", "x", "n.1"))
		m := c.see()
		require.Equal(t, granted, m.phase)
		require.Equal(t, gift{9, "r"}, gift{m.grant.fence, m.grant.resource})
		e.beats.Stop()
	})
}

// What no deadline is delays nothing, and nothing is set later than it was.
func TestAPushSetsTheTimerOfALineOnlySooner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := waiter()
		defer e.stopTimers()
		next := func(ms string) time.Duration {
			e.deliver(wake.Message{Word: "next", Name: "x", Fields: []string{ms}})
			e.deliver(wake.Message{Word: "next", Name: "y", Fields: []string{ms}})
			return e.lines[Line{Name: "x"}].due
		}
		require.Equal(t, 500*time.Millisecond, next("500"))
		for _, none := range []string{"-50", "501", strconv.Itoa(farthestPush + 1), "27670116110564", "18446744073710", "9223372036854775807"} {
			require.Equal(t, 500*time.Millisecond, next(none), none)
		}
		require.Equal(t, 400*time.Millisecond, next("400"))
		require.Equal(t, time.Millisecond, next("0"))
	})
}
