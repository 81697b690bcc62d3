package heartbeat

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/gate"
)

// gated has the beats of claims that wait pass a gate.
func (w *world) gated() (*gate.Gate, *gate.Door) {
	g := gate.New(w.clock, 3*time.Second)
	w.Engine.gate = func(string) *gate.Gate { return g }
	return g, g.Door()
}

// fill sends as many asks as may pass.
func fill(d *gate.Door) (n int) {
	for d.Try() {
		n++
	}
	return n
}

func TestBeatsOfClaimsThatWaitPassTheGate(t *testing.T) {
	inWorld(t, renewAll, func(w *world) {
		_, d := w.gated()
		w.add("hold", "k", w.hold(lease))
		w.add("claim", "k", w.claim(lease))
		fill(d)
		w.until(lease / 2)
		for _, call := range w.calls() {
			require.Equal(w.t, []string{"hold"}, call.claims, "what holds waits for nothing")
		}
		before := len(w.calls())
		d.Leave(w.clock.Now())
		w.until(lease/2 + ms)
		require.Len(w.t, w.calls(), before+1)
		require.Equal(w.t, []string{"claim"}, w.calls()[before].claims, "as soon as there is room")
		require.Equal(w.t, 1, fill(d), "it has been answered")
	})
}

func TestBeatsOfClaimsThatWaitAreBoundedByTheirAnswers(t *testing.T) {
	const many = 20_000
	answers := make(chan struct{})
	inWorld(t, func(ctx context.Context, key string, leases []*Lease) ([]Outcome, error) {
		select {
		case <-answers:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return renewAll(ctx, key, leases)
	}, func(w *world) {
		answers = make(chan struct{}) // the bubble's
		w.gated()
		for i := range many {
			w.add(strconv.Itoa(i), "k", w.claim(time.Hour))
		}
		w.until(time.Hour / 2)
		sent := len(w.calls())
		require.LessOrEqual(w.t, sent, gate.Most/gate.Beat(200)+1)
		for range sent {
			answers <- struct{}{}
		}
		w.until(time.Hour/2 + ms)
		require.Greater(w.t, len(w.calls()), sent)
		close(answers)
		w.until(time.Hour/2 + 10*time.Second)
		require.Len(w.t, w.turns(), many, "all have their turn")
	})
}

// Its answer may come yet.
func TestABeatOfAClaimThatWaitsIsNotRepeatedBeforeHalfOfItsLease(t *testing.T) {
	inWorld(t, script(hang, renewAll), func(w *world) {
		w.add("a", "k", w.claim(lease))
		w.until(lease)
		require.Equal(w.t, map[string][]time.Duration{"a": {lease / 3, lease/3 + lease/2}}, w.turns())
	})
}

func TestBeatsOfClaimsThatWaitAreFewerWhileAnswersAreLate(t *testing.T) {
	inWorld(t, renewAll, func(w *world) {
		g, d := w.gated()
		w.add("a", "k", w.claim(lease))
		w.until(time.Second)
		for range fill(d) {
			d.Leave(0) // after a second
		}
		require.True(w.t, g.Strained())
		w.until(2 * lease)
		times := w.times()
		require.Equal(w.t, lease/3, times[0])
		require.Equal(w.t, lease/3+lease/2, times[1])
	})
}

// All are due at once, as after a subscription that was made anew.
func TestHoldsDoNotWaitForTheHeartbeatsOfWaits(t *testing.T) {
	const holds, waits = 1_000, 20_000
	inWorld(t, queue(100*time.Microsecond), func(w *world) {
		w.gated()
		for i := range holds {
			w.add("h"+strconv.Itoa(i), "h"+strconv.Itoa(i), w.hold(30*time.Second))
		}
		for i := range waits {
			w.add("w"+strconv.Itoa(i), "w"+strconv.Itoa(i), w.claim(30*time.Second))
		}
		w.until(5 * time.Second)
		w.Kick("")
		w.until(9 * time.Second)
		held, before := 0, 0
		for _, c := range w.calls() {
			if c.key[0] == 'h' {
				held++
			} else if held < holds {
				before++
			}
		}
		require.Equal(w.t, holds, held)
		require.Less(w.t, before, waits/4, "beats of waits before the last hold's")
	})
}
