package allocator

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/values"
	"github.com/berth-go/berth/pkg/observe"
)

var errMyOwn = errors.New("my own reason")

// clinic is a pool whose resources are checked, without a server. The value of a
// resource is its key.
type clinic struct {
	t      *testing.T
	health health[string]

	// before is called in each Open, and may fail it.
	before func(ctx context.Context, resource string) error

	list    []ResourceInfo
	listErr error // ends the listing after list

	// refuses says what a lease or a release of a resource fails with; nil for none.
	refuses func(call, resource string) error

	mu     sync.Mutex
	opened []string            // guarded by mu: the values, in order
	closed []string            // guarded by mu: the values, in order
	holds  map[string]*checkup // guarded by mu
	now    int                 // guarded by mu: how many are held
	most   int                 // guarded by mu: how many were at once
	gave   []string            // guarded by mu: "resource rest reason", as released
	told   []string            // guarded by mu
}

// checkup is a hold on a resource of a clinic.
type checkup struct {
	*clinic
	resource string
	ctx      context.Context
	lose     context.CancelCauseFunc
}

// newClinic has free resources of these names.
func newClinic(t *testing.T, healthy func(context.Context, string) error, resources ...string) *clinic {
	t.Helper()
	c := &clinic{t: t, holds: make(map[string]*checkup)}
	for _, resource := range resources {
		c.list = append(c.list, ResourceInfo{Resource: resource, State: Free})
	}
	c.health = health[string]{
		limited: func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Hour)
		},
		values: values.New(c.open, c.close, nil), healthy: healthy, rest: time.Minute, lease: c.lease,
		tell: func(ev observe.Event) {
			text := fmt.Sprint(ev.Kind, " ", ev.Resource, ev.Count)
			if ev.Err != nil {
				text += " " + strings.ReplaceAll(ev.Err.Error(), "\n", "; ")
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.told = append(c.told, text)
		},
	}
	return c
}

func (c *clinic) open(ctx context.Context, resource string) (string, error) {
	if c.before != nil {
		if err := c.before(ctx, resource); err != nil {
			return "", err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.opened = append(c.opened, resource)
	return resource, nil
}

func (c *clinic) close(value string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = append(c.closed, value)
	return nil
}

func (c *clinic) all() iter.Seq2[ResourceInfo, error] {
	return func(yield func(ResourceInfo, error) bool) {
		for _, info := range c.list {
			if !yield(info, nil) {
				return
			}
		}
		if c.listErr != nil {
			yield(ResourceInfo{}, c.listErr)
		}
	}
}

func (c *clinic) check(ctx context.Context, workers int) (HealthReport, error) {
	return c.health.run(ctx, c.all(), workers)
}

func (c *clinic) lease(ctx context.Context, resource string) (trial, error) {
	if c.refuses != nil {
		if err := c.refuses("lease", resource); err != nil {
			return nil, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	h := &checkup{clinic: c, resource: resource}
	h.ctx, h.lose = context.WithCancelCause(context.Background())
	c.holds[resource] = h
	c.now++
	c.most = max(c.most, c.now)
	return h, nil
}

func (h *checkup) Within(ctx context.Context) (context.Context, context.CancelFunc) {
	inner, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(h.ctx, func() { cancel(context.Cause(h.ctx)) })
	return inner, func() { stop(); cancel(nil) }
}

func (h *checkup) release(_ context.Context, rest time.Duration, reason string) error {
	h.clinic.mu.Lock()
	defer h.clinic.mu.Unlock()
	if h.holds[h.resource] != h {
		h.t.Errorf("%q is released twice", h.resource)
	}
	delete(h.holds, h.resource)
	h.now--
	h.gave = append(h.gave, fmt.Sprint(h.resource, " ", rest, " ", reason))
	if h.refuses != nil {
		return h.refuses("release", h.resource)
	}
	return nil
}

// hold is the hold under which a resource is checked now.
func (c *clinic) hold(resource string) *checkup {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.holds[resource]
}

// over fails unless all is given back, and nobody uses a value, so that each is closed
// when it is dropped.
func (c *clinic) over() {
	c.t.Helper()
	require.Empty(c.t, c.holds)
	for _, info := range c.list {
		c.health.values.Drop(info.Resource)
	}
	require.ElementsMatch(c.t, c.opened, c.closed)
}

func TestWhatIsNotHealthyRestsAndItsValueIsClosed(t *testing.T) {
	t.Parallel()
	c := newClinic(t, func(_ context.Context, value string) error {
		switch value {
		case "bad":
			return errMyOwn
		case "panics":
			panic("mine")
		}
		return nil
	}, "good", "bad", "shut", "panics", "fine")
	c.before = func(_ context.Context, resource string) error {
		if resource == "shut" {
			return errors.New("no answer")
		}
		return nil
	}
	report, err := c.check(context.Background(), 1)
	require.NoError(t, err)
	require.Equal(t, HealthReport{Checked: 5, Healthy: 2, Unhealthy: 3}, report)
	require.Equal(t, []string{"good 0s ", "bad 1m0s my own reason", "shut 1m0s no answer"}, c.gave[:3])
	require.Contains(t, c.gave[3], "panics 1m0s berth: Healthy panicked: mine")
	require.Equal(t, "fine 0s ", c.gave[4])
	require.Equal(t, []string{"bad", "panics"}, c.closed)
	require.ElementsMatch(t, []string{"good", "fine"}, c.health.values.Idle())
	require.Equal(t, []string{
		"health_progress 1",
		"unhealthy bad0 my own reason", "health_progress 2",
		"unhealthy shut0 no answer", "health_progress 3",
	}, c.told[:5])
	require.Contains(t, c.told[5], "unhealthy panics0 berth: Healthy panicked: mine")
	require.Equal(t, []string{"health_progress 4", "health_progress 5", "health_checked 5"}, c.told[6:])
	c.over()
}

func TestWhatIsNotFreeIsLeftAlone(t *testing.T) {
	t.Parallel()
	c := newClinic(t, nil, "free", "wanted", "gone")
	c.list = append(c.list,
		ResourceInfo{Resource: "leased", State: Leased}, ResourceInfo{Resource: "resting", State: Resting})
	c.refuses = func(call, resource string) error {
		switch {
		case call == "lease" && resource == "wanted":
			return &berth.AcquireError{Reason: berth.ReasonQueuedAhead}
		case call == "lease" && resource == "gone":
			return &berth.AcquireError{Reason: berth.ReasonGone, Cause: berth.ErrAbsent}
		case resource == "leased" || resource == "resting":
			t.Errorf("%s of %s", call, resource)
		}
		return nil
	}
	report, err := c.check(context.Background(), 3)
	require.NoError(t, err)
	require.Equal(t, HealthReport{Checked: 1, Healthy: 1, Skipped: 4}, report)
	require.Equal(t, []string{"free"}, c.opened, "without Healthy only Open is tried")
	require.Equal(t, []string{"health_progress 1", "health_checked 1"}, c.told)
	c.over()
}

func TestAsManyAsThereAreWorkersAreCheckedAtOnce(t *testing.T) {
	t.Parallel()
	for _, workers := range []int{1, 4, 1 << 40} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			c := newClinic(t, func(context.Context, string) error {
				time.Sleep(time.Second)
				return nil
			}, strings.Split("abcdefghij", "")...)
			report, err := c.check(context.Background(), workers)
			require.NoError(t, err)
			require.Equal(t, HealthReport{Checked: 10, Healthy: 10}, report)
			require.Equal(t, min(workers, 10), c.most)
			rounds := (10 + min(workers, 10) - 1) / min(workers, 10)
			require.Equal(t, time.Duration(rounds)*time.Second, time.Since(began))
			for n := range 10 {
				require.Equal(t, fmt.Sprint("health_progress ", n+1), c.told[n], "one after the other")
			}
			c.over()
		})
	}
}

func TestTheEndOfTheContextEndsTheCheckSoonAndCondemnsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ctx, cancel := context.WithCancelCause(context.Background())
		c := newClinic(t, func(ctx context.Context, value string) error {
			if value == "a" {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}, "a", "b", "c", "d")
		time.AfterFunc(time.Second, func() { cancel(errMyOwn) })
		report, err := c.check(ctx, 2)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, errMyOwn)
		require.Equal(t, HealthReport{Checked: 1, Healthy: 1}, report)
		require.Equal(t, time.Second, time.Since(began))
		slices.Sort(c.gave)
		require.Equal(t, []string{"a 0s ", "b 0s ", "c 0s "}, c.gave)
		require.Empty(t, c.closed)
		require.Equal(t, []string{"health_progress 1", "health_checked 1 context canceled; my own reason"}, c.told)
		c.over()

		c.gave = nil
		for range 20 {
			_, err = c.check(ctx, 2)
			require.ErrorIs(t, err, errMyOwn)
			require.Empty(t, c.gave, "nothing is begun")
		}
	})
}

// The lease of a claim whose ctx's deadline has passed matches ErrBusy, but nobody
// was in its way.
func TestADeadlineIsNotMistakenForAResourceInUse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		c := newClinic(t, nil, "a")
		c.refuses = func(string, string) error {
			<-ctx.Done()
			return &berth.AcquireError{Reason: berth.ReasonTimedOut, Cause: ctx.Err()}
		}
		report, err := c.check(ctx, 1)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Zero(t, report)
	})
}

func TestALostHoldSaysNothingOfItsResource(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"Open", "Healthy"} {
		synctest.Test(t, func(t *testing.T) {
			var c *clinic
			lost := func(ctx context.Context, at, resource string) error {
				if at != when || resource != "a" {
					return nil
				}
				c.hold(resource).lose(berth.ErrLost)
				<-ctx.Done()
				return context.Cause(ctx)
			}
			c = newClinic(t, func(ctx context.Context, value string) error { return lost(ctx, "Healthy", value) }, "a", "b")
			c.before = func(ctx context.Context, resource string) error { return lost(ctx, "Open", resource) }
			c.refuses = func(call, resource string) error {
				if call == "release" && resource == "a" {
					return berth.ErrLost
				}
				return nil
			}
			report, err := c.check(context.Background(), 1)
			require.NoError(t, err)
			require.Equal(t, HealthReport{Checked: 1, Healthy: 1, Skipped: 1}, report)
			require.Equal(t, []string{"a 0s ", "b 0s "}, c.gave)
			require.Empty(t, c.closed)
			c.over()
		})
	}
}

func TestAnErrorOfTheServerEndsTheCheckAndWhatWasFoundIsReturned(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"lease", "release", "listing"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			c := newClinic(t, nil, "a", "b", "c", "d", "e", "f", "g")
			want := HealthReport{Checked: 2, Healthy: 2}
			switch call {
			case "listing":
				c.list, c.listErr = c.list[:2], errMyOwn
			case "release":
				want = HealthReport{Checked: 3, Healthy: 3} // c was asked
			}
			c.refuses = func(failed, resource string) error {
				if failed == call && resource == "c" {
					return errMyOwn
				}
				return nil
			}
			report, err := c.check(context.Background(), 1)
			require.Equal(t, errMyOwn, err)
			require.GreaterOrEqual(t, report.Checked, want.Checked)
			require.LessOrEqual(t, report.Checked, want.Checked+1, "one may have begun before the error was known")
			require.Equal(t, report.Checked, report.Healthy)
			require.Equal(t, fmt.Sprintf("health_checked %d my own reason", report.Checked), c.told[len(c.told)-1])
			c.over()
		})
	}
}

func TestAClosedPoolCondemnsNothing(t *testing.T) {
	t.Parallel()
	c := newClinic(t, nil, "a", "b")
	c.health.values.Close()
	report, err := c.check(context.Background(), 1)
	require.Equal(t, berth.ErrClosed, err)
	require.Zero(t, report)
	for _, gave := range c.gave {
		require.Contains(t, gave, " 0s ")
	}
	c.over()
}

func TestALongErrorIsCutForTheReason(t *testing.T) {
	t.Parallel()
	c := newClinic(t, func(context.Context, string) error { return errors.New(strings.Repeat("я", 300)) }, "a")
	_, err := c.check(context.Background(), 1)
	require.NoError(t, err)
	require.Equal(t, []string{"a 1m0s " + strings.Repeat("я", 256)}, c.gave)
}
