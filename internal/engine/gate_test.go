package engine_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// mostAsking is the engine's bound.
const mostAsking = 512

// busy is a server that runs one acquire after the other, and takes a while for each.
type busy struct {
	fake
	takes   time.Duration
	patient time.Duration // CallTimeout
	started time.Time

	mu     sync.Mutex
	free   time.Time       // guarded by mu: when it can run the next one
	came   []string        // guarded by mu: the claims, in the order in which their acquires came
	now    int             // guarded by mu: in flight
	most   int             // guarded by mu
	runs   chan struct{}   // if not nil, a run needs one of these
	renews []time.Duration // guarded by mu: when a heartbeat came
	breaks error           // if not nil, what the claim "broken" is told
}

func (b *busy) Acquire(ctx context.Context, c *engine.Claim) (engine.Answer, error) {
	if b.breaks != nil && c.Request == "broken" {
		return engine.Answer{}, b.breaks
	}
	b.mu.Lock()
	b.came = append(b.came, c.Request.(string))
	if len(b.came) > 60_000 {
		b.mu.Unlock()
		return engine.Answer{}, errors.New("asked for again and again") // would never end
	}
	b.now++
	b.most = max(b.most, b.now)
	if now := time.Now(); b.free.Before(now) {
		b.free = now
	}
	b.free = b.free.Add(b.takes)
	answered := time.Until(b.free)
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.now--
	}()
	if b.runs != nil {
		<-b.runs
	}
	if answered > b.patient {
		<-time.After(b.patient)
		return engine.Answer{}, &scriptkit.Error{MaybeRan: true, Repeatable: true, Err: errOwn}
	}
	<-time.After(answered)
	return b.fake.Acquire(ctx, c)
}

func (b *busy) Beat(ctx context.Context, name string, mode engine.Mode, claims []*engine.Claim) (engine.Round, error) {
	b.mu.Lock()
	b.renews = append(b.renews, time.Since(b.started))
	b.mu.Unlock()
	round, err := b.fake.Beat(ctx, name, mode, claims)
	for i := range round.Status {
		round.Status[i].Left = time.Hour
	}
	return round, err
}

// sent are the acquires that came.
func (b *busy) sent() []string {
	came, _ := b.seen()
	return came
}

// seen are the acquires that came, and the most that were in flight.
func (b *busy) seen() (came []string, most int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.came...), b.most
}

// onBusy runs a test in virtual time with an engine on such a server.
func onBusy(t *testing.T, b *busy, test func(t *testing.T, b *busy, e *engine.Engine)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b.fence, b.left, b.started = 1, time.Hour, time.Now()
		if b.runs != nil {
			b.runs = make(chan struct{}) // the bubble's
		}
		e, _ := begin(t, b, func(cfg *engine.Config) { cfg.Wait, cfg.CallTimeout = time.Hour, b.patient })
		test(t, b, e)
	})
}

// labelled is a claim with a label, by which the server sees it.
func labelled(e *engine.Engine, label string, mayWait bool) *engine.Claim {
	r := engine.Record{Weight: 1, Wait: time.Hour, Lease: time.Hour}
	return &engine.Claim{ID: e.ClaimID(), Name: "x", Record: r, MayWait: mayWait, Request: label}
}

func TestFiveThousandAcquiresAtOnceAreEachSentOnce(t *testing.T) {
	const many = 5_000
	for name, ends := range map[string]bool{"a context that ends": true, "one that never does": false} {
		t.Run(name, func(t *testing.T) {
			// 5 s in all, longer than a call may take.
			onBusy(t, &busy{takes: time.Millisecond, patient: time.Second}, func(t *testing.T, b *busy, e *engine.Engine) {
				ctx := context.Background()
				if ends {
					ctx = t.Context()
				}
				var all sync.WaitGroup
				var failed atomic.Int32
				for range many {
					all.Go(func() {
						if _, err := e.Acquire(ctx, labelled(e, "", true), 0); err != nil {
							failed.Add(1)
						}
					})
				}
				all.Wait()
				came, most := b.seen()
				require.Zero(t, failed.Load())
				sent := len(came) // and not all of them in the message
				require.Equal(t, many, sent, "none is asked for again")
				require.Equal(t, mostAsking, most)
				require.Equal(t, many*b.takes, time.Since(b.started), "the server is never idle")
			})
		})
	}
}

// crowd has so many acquires wait, one after the other.
func crowd(ctx context.Context, e *engine.Engine, from, to int) (errs chan error) {
	errs = make(chan error, to-from)
	for i := from; i < to; i++ {
		go func() {
			_, err := e.Acquire(ctx, labelled(e, strconv.Itoa(i), true), 0)
			errs <- err
		}()
		synctest.Wait()
	}
	return errs
}

func TestReleasesAndHeartbeatsPassAcquiresThatWait(t *testing.T) {
	onBusy(t, &busy{patient: 10 * time.Hour}, func(t *testing.T, b *busy, e *engine.Engine) {
		h, err := e.Acquire(context.Background(), labelled(e, "first", true), 0)
		require.NoError(t, err)
		b.mu.Lock()
		b.runs = make(chan struct{})
		b.mu.Unlock()
		crowd(context.Background(), e, 0, mostAsking+10)
		after(time.Hour / 3)
		b.mu.Lock()
		require.Equal(t, []time.Duration{time.Hour / 3}, b.renews)
		b.mu.Unlock()
		require.NoError(t, h.Release(context.Background()))
		require.EqualValues(t, 1, b.released.Load())
		close(b.runs)
		synctest.Wait()
	})
}

func TestAWaitThatEndsBeforeItsAcquireIsSentSaysSo(t *testing.T) {
	onBusy(t, &busy{patient: time.Hour, runs: make(chan struct{})}, func(t *testing.T, b *busy, e *engine.Engine) {
		sent := crowd(context.Background(), e, 0, mostAsking)
		ctx, leave := context.WithCancel(context.Background())
		leaves := crowd(ctx, e, mostAsking, mostAsking+1)
		leave()
		require.ErrorIs(t, <-leaves, context.Canceled)
		require.Zero(t, time.Since(b.started), "at once")
		ends := func(maxWait time.Duration, mayWait bool) *berth.AcquireError {
			_, err := e.Acquire(context.Background(), labelled(e, "late", mayWait), maxWait)
			require.ErrorIs(t, err, berth.ErrUnavailable)
			require.ErrorContains(t, err, "not sent")
			return refused(t, err)
		}
		require.Equal(t, berth.ReasonTimedOut, ends(time.Second, true).Reason)
		start := time.Now()
		require.Equal(t, berth.ReasonFailed, ends(0, false).Reason, "a try waits for no longer than its attempts take")
		require.Equal(t, 10*time.Second, time.Since(start), "Retry.Within")
		waits := crowd(context.Background(), e, mostAsking, mostAsking+10)
		closed := closes(e)
		for range 10 {
			require.ErrorIs(t, <-waits, berth.ErrClosed)
		}
		close(b.runs)
		require.NoError(t, <-closed)
		for range mostAsking {
			require.ErrorIs(t, <-sent, berth.ErrClosed)
		}
		require.Len(t, b.sent(), mostAsking)
		require.EqualValues(t, mostAsking, b.released.Load(), "of what was not sent there is nothing to remove")
	})
}

// An attempt may have run, and the next one does not pass.
func TestATryThatIsNotSentAgainTellsWhatItsLastAttemptMet(t *testing.T) {
	b := &busy{patient: time.Hour, runs: make(chan struct{}), breaks: &scriptkit.Error{MaybeRan: true, Repeatable: true, Err: errors.New("cut off")}}
	onBusy(t, b, func(t *testing.T, b *busy, e *engine.Engine) {
		sent := crowd(context.Background(), e, 0, mostAsking-1)
		failed := inBackground(func() error {
			_, err := e.Acquire(context.Background(), labelled(e, "broken", false), 0)
			return err
		}) // it pauses
		last := crowd(context.Background(), e, mostAsking-1, mostAsking)
		synctest.Wait()
		err := <-failed
		require.ErrorContains(t, err, "cut off")
		require.NotContains(t, err.Error(), "not sent")
		close(b.runs)
		for range mostAsking - 1 {
			require.NoError(t, <-sent)
		}
		require.NoError(t, <-last)
	})
}
