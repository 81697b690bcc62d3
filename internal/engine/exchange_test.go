package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// attempt is what one attempt of an exchange is told.
type attempt struct {
	engine.Exchanged
	err error
}

var (
	isOther  = attempt{Exchanged: engine.Exchanged{Fence: 2, Resource: "r2"}}
	isBusy   = attempt{Exchanged: engine.Exchanged{Refused: isFull.Refused}}
	isCut    = attempt{Exchanged: engine.Exchanged{Refused: isFull.Refused, More: true}}
	isOne    = attempt{Exchanged: engine.Exchanged{Fence: 2, Resource: "r2", More: true}}
	isOver   = attempt{Exchanged: engine.Exchanged{Ended: berth.ErrExpired}}
	ran      = attempt{err: &scriptkit.Error{MaybeRan: true, Repeatable: true, Err: errOwn}}
	ranNot   = attempt{err: &scriptkit.Error{Repeatable: true, Err: errOwn}}
	mayNever = attempt{err: &scriptkit.Error{Err: errOwn}}
)

// attempts are told one after the other, the last one again and again; n counts them.
func attempts(n *int, told ...attempt) func(context.Context) (engine.Exchanged, error) {
	return func(context.Context) (engine.Exchanged, error) {
		a := told[min(*n, len(told)-1)]
		*n++
		return a.Exchanged, a.err
	}
}

func TestWhatAnExchangeIsToldDecidesWhatIsHeldAfterIt(t *testing.T) {
	cut := make([]attempt, 30) // more than Retry has attempts
	for i := range cut {
		cut[i] = isCut
	}
	full := isFull.Refused
	for name, c := range map[string]struct {
		told      []attempt
		sent      int // 0 for as many as Retry allows
		exchanged bool
		swept     int
		want, end error // what is returned, and how the hold has ended
	}{
		"another one":                          {told: []attempt{isOther}, sent: 1, exchanged: true},
		"another one, by the second attempt":   {told: []attempt{ran, isOther}, sent: 2, exchanged: true},
		"a refusal":                            {told: []attempt{isBusy}, sent: 1, want: full},
		"a refusal after one that did not run": {told: []attempt{ranNot, isBusy}, sent: 2, want: full},
		"a refusal after one that may have":    {told: []attempt{ran, isBusy}, sent: 2, exchanged: true, want: full, end: berth.ErrLost},
		"nothing":                              {told: []attempt{ran}, exchanged: true, want: errOwn, end: berth.ErrLost},
		"nothing, and it never ran":            {told: []attempt{ranNot}, want: errOwn},
		"nothing, and the last ones never ran": {told: []attempt{ran, ranNot}, exchanged: true, want: errOwn, end: berth.ErrLost},
		"an error for good":                    {told: []attempt{mayNever}, sent: 1, want: errOwn},
		"an end":                               {told: []attempt{isOver}, sent: 1, want: berth.ErrExpired, end: berth.ErrExpired},
		"an end, after one that may have run":  {told: []attempt{ran, isOver}, sent: 2, exchanged: true, want: berth.ErrExpired, end: berth.ErrExpired},
		"that it stopped at its bound":         {told: append(cut, isOther), sent: 31, exchanged: true, swept: 30},
		"another one, and that it stopped":     {told: []attempt{isOne}, sent: 1, exchanged: true, swept: 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := &played{answers: []reply{{Status: isHeld}}}
			onPlayed(t, p, func(t *testing.T, e *engine.Engine, _ func() []observe.Kind) {
				h, sent := take(t, e), 0
				left := h.Left()
				exchanged, err := h.Exchange(context.Background(), attempts(&sent, c.told...))
				synctest.Wait()
				require.Equal(t, c.exchanged, exchanged)
				require.ErrorIs(t, err, c.want)
				require.ErrorIs(t, h.Err(), c.end)
				require.Equal(t, c.end != nil, errors.Is(err, berth.ErrNotHeld))
				require.True(t, sent == c.sent || c.sent == 0 && sent > 2, "%d attempts", sent)
				if sent == 1 && c.end == nil {
					require.Equal(t, left, h.Left(), "no deadline moves")
				}
				p.mu.Lock()
				require.Len(t, p.swept, c.swept)
				p.mu.Unlock()
				fence, resource := int64(1), "r1"
				if c.want == nil {
					fence, resource = 2, "r2"
				}
				require.Equal(t, fence, h.Fence())
				require.Equal(t, resource, h.Resource())
				require.Equal(t, errors.Is(c.end, berth.ErrLost), p.released.Load() == 1, "what it holds by now is given back")
			})
		})
	}
}

func TestASweepThatNeverEndsIsEnded(t *testing.T) {
	p := &played{answers: []reply{{Status: isHeld}}, endless: true}
	onPlayed(t, p, func(t *testing.T, e *engine.Engine, _ func() []observe.Kind) {
		h, sent := take(t, e), 0
		_, err := h.Exchange(context.Background(), attempts(&sent, isCut))
		require.ErrorIs(t, err, isFull.Refused)
		require.Equal(t, 2, sent)
		p.mu.Lock()
		defer p.mu.Unlock()
		require.Len(t, p.swept, 10_000)
	})
}

func TestAnExchangeWhoseCallerHasLeftIsNotRepeated(t *testing.T) {
	for name, c := range map[string]struct {
		told      attempt
		leaves    time.Duration
		sent      int
		exchanged bool
		end       error
	}{
		"before it is sent":            {told: ran, leaves: 0, sent: 0},
		"and it did not run":           {told: ranNot, leaves: time.Millisecond, sent: 1},
		"and it may have run":          {told: ran, leaves: time.Millisecond, sent: 1, exchanged: true, end: berth.ErrLost},
		"and it stopped at its bound":  {told: isCut, leaves: time.Millisecond, sent: 1},
		"and it is answered after all": {told: isOther, leaves: time.Millisecond, sent: 1, exchanged: true},
	} {
		t.Run(name, func(t *testing.T) {
			onFake(t, func(t *testing.T, _ *fake, e *engine.Engine, _ func() int) {
				h, sent := take(t, e), 0
				ctx, leave := context.WithCancelCause(context.Background())
				time.AfterFunc(c.leaves, func() { leave(errOwn) })
				after(0)
				exchanged, err := h.Exchange(ctx, func(ctx context.Context) (engine.Exchanged, error) {
					after(time.Millisecond)
					require.Zero(t, sent, "it is repeated")
					require.NoError(t, ctx.Err(), "an attempt is never cut short")
					return attempts(&sent, c.told)(ctx)
				})
				require.Equal(t, c.sent, sent)
				require.Equal(t, c.exchanged, exchanged)
				require.ErrorIs(t, h.Err(), c.end)
				if sent == 0 {
					require.ErrorIs(t, err, errOwn)
					require.ErrorIs(t, err, context.Canceled)
				}
			})
		})
	}
}

func TestTheOwnCallsOfAHoldAreSentOneAfterTheOther(t *testing.T) {
	onFake(t, func(t *testing.T, f *fake, e *engine.Engine, _ func() int) {
		h, began := take(t, e), e.Now()
		const each = 100 * time.Millisecond
		first, second := exchange(f, h, 2, "r2", each), exchange(f, h, 3, "r3", each)
		require.NoError(t, <-first)
		require.Equal(t, each, e.Now()-began)
		require.Equal(t, "r2", h.Resource())
		synctest.Wait() // the second one is sent
		f.slows(each)
		renewed := inBackground(func() error { return h.Renew(context.Background()) })
		require.NoError(t, <-second)
		require.Equal(t, 2*each, e.Now()-began)
		require.Equal(t, "r3", h.Resource())
		require.NoError(t, <-renewed)
		require.Equal(t, 3*each, e.Now()-began)
	})
}

// Whoever has the token of a hold that is detached relies on what it is of.
func TestAnExchangeBehindADetachIsRefused(t *testing.T) {
	onFake(t, func(t *testing.T, f *fake, e *engine.Engine, _ func() int) {
		h, sent := take(t, e), 0
		f.slows(time.Second)
		detached := inBackground(func() error { return h.Detach(context.Background()) })
		exchanged, err := h.Exchange(context.Background(), attempts(&sent, isOther))
		require.False(t, exchanged)
		require.ErrorIs(t, err, berth.ErrReleased)
		require.NoError(t, <-detached)
		require.Zero(t, sent)
	})
}
