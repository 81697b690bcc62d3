package values

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
)

func TestWhoWaitsForAnOpenGetsItsValueOrItsError(t *testing.T) {
	t.Parallel()
	for _, fails := range []error{nil, errMyOwn} {
		synctest.Test(t, func(t *testing.T) {
			s := newThings(t)
			let := make(chan struct{})
			s.before = func(context.Context, string) error { <-let; return fails }
			var all []*taken
			for range 5 {
				all = append(all, s.begin(context.Background(), "r"))
			}
			require.Equal(t, 1, s.opened)
			close(let)
			synctest.Wait()
			for _, r := range all {
				require.True(t, r.done)
				require.Equal(t, fails, r.err)
				if fails == nil {
					require.Equal(t, thing{"r", 1}, r.value)
				}
			}
			require.Equal(t, 1, s.opened)
			if fails == nil {
				require.Equal(t, 5, s.kept["r"].users)
				return
			}
			s.before = nil
			require.Equal(t, 2, s.use("r").number, "an error is not kept")
		})
	}
}

func TestAnOpenOfOneResourceDelaysNoOther(t *testing.T) {
	inStore(t, func(t *testing.T, s *things) {
		let := make(chan struct{})
		s.before = func(_ context.Context, resource string) error {
			if resource == "slow" {
				<-let
			}
			return nil
		}
		slow := s.begin(context.Background(), "slow")
		s.use("fast")
		require.False(t, slow.done)
		close(let)
		synctest.Wait()
		require.NoError(t, slow.err)
	})
}

func TestWhoWaitsForAnOpenMayLeave(t *testing.T) {
	inStore(t, func(t *testing.T, s *things) {
		let := s.opensLater()
		first := s.begin(context.Background(), "r")
		ctx, cancel := context.WithCancelCause(context.Background())
		second := s.begin(ctx, "r")
		cancel(errMyOwn)
		synctest.Wait()
		require.ErrorIs(t, second.err, context.Canceled)
		require.ErrorIs(t, second.err, errMyOwn)
		require.False(t, first.done)
		close(let)
		synctest.Wait()
		require.NoError(t, first.err)
		require.Equal(t, 1, s.kept["r"].users)
	})
}

func TestWhereTheOpenersContextEndedTheNextOneOpensWithItsOwn(t *testing.T) {
	inStore(t, func(t *testing.T, s *things) {
		type key struct{}
		var by []any
		s.before = func(ctx context.Context, _ string) error {
			by = append(by, ctx.Value(key{}))
			if len(by) == 1 {
				<-ctx.Done()
				return errMyOwn // as libraries do that do not say why
			}
			return nil
		}
		ctx, cancel := context.WithCancel(context.WithValue(context.Background(), key{}, "first"))
		first := s.begin(ctx, "r")
		second := s.begin(context.WithValue(context.Background(), key{}, "second"), "r")
		third := s.begin(context.WithValue(context.Background(), key{}, "second"), "r")
		cancel()
		synctest.Wait()
		require.ErrorIs(t, first.err, errMyOwn)
		require.NoError(t, second.err)
		require.NoError(t, third.err)
		require.Equal(t, []any{"first", "second"}, by)
		require.Equal(t, 2, s.kept["r"].users)
	})
}

func TestAPanicOfOpenGoesToItsCallerAndTheNextOneOpens(t *testing.T) {
	inStore(t, func(t *testing.T, s *things) {
		let := make(chan struct{})
		s.before = func(context.Context, string) error {
			<-let
			s.mu.Lock()
			first := s.opened == 1
			s.mu.Unlock()
			if first {
				panic("mine")
			}
			return nil
		}
		first := s.begin(context.Background(), "r")
		second := s.begin(context.Background(), "r")
		close(let)
		synctest.Wait()
		require.Equal(t, "mine", first.panicked)
		require.True(t, second.done)
		require.Nil(t, second.panicked)
		require.NoError(t, second.err)
		require.Equal(t, 1, s.kept["r"].users)
		s.Give("r")
		s.Drop("r")
		require.Equal(t, []int{2}, s.closes())
		require.Empty(t, s.kept)
	})
}

func TestAfterCloseNothingIsTakenAndALateValueIsClosed(t *testing.T) {
	inStore(t, func(t *testing.T, s *things) {
		let := s.opensLater()
		first := s.begin(context.Background(), "r")
		second := s.begin(context.Background(), "r")
		s.Close()
		synctest.Wait()
		require.False(t, first.done)
		require.ErrorIs(t, second.err, berth.ErrClosed, "who waits does not wait for the Open")
		_, err := s.Take(context.Background(), "r")
		require.ErrorIs(t, err, berth.ErrClosed)
		require.Empty(t, s.closes())

		close(let)
		synctest.Wait()
		require.ErrorIs(t, first.err, berth.ErrClosed)
		require.Zero(t, first.value)
		require.Equal(t, []int{1}, s.closes())
		require.Equal(t, 1, s.opened)
	})
}

func TestAnErrorOrAPanicOfCloseIsReportedAndStopsNothing(t *testing.T) {
	t.Parallel()
	s := newThings(t)
	s.during = func(v thing) error {
		if v.resource == "panics" {
			panic(errMyOwn)
		}
		return errMyOwn
	}
	for _, resource := range []string{"fails", "panics"} {
		s.use(resource)
		s.Drop(resource)
		s.Give(resource)
	}
	require.Equal(t, []int{1, 2}, s.closes())
	require.Len(t, s.reports, 2)
	require.Equal(t, `fails: berth: closing the value of "fails": my own reason`, s.reports[0])
	require.Contains(t, s.reports[1], `berth: closing the value of "panics": berth: Close panicked: my own reason`)
	require.Contains(t, s.reports[1], "open_test.go", "the stack")

	s.use("fails")
	s.use("panics")
	s.Close()
	require.Len(t, s.reports, 4)
	require.Equal(t, []int{1, 2, 3, 4}, s.closes())
}

func TestCloseWaitsForWhatIsBeingClosed(t *testing.T) {
	inStore(t, func(t *testing.T, s *things) {
		s.during = func(thing) error { time.Sleep(time.Second); return nil }
		s.use("r")
		s.Drop("r")
		go s.Give("r")
		synctest.Wait()
		began := time.Now()
		s.Close()
		require.Equal(t, time.Second, time.Since(began))
	})
}

// asked is a context that tells when somebody asks whether it has ended.
type asked struct {
	context.Context
	is func()
}

func (a asked) Err() error {
	a.is()
	return a.Context.Err()
}

// A context may find that a hold is over, and then tells an observer, who may take his time.
func TestAStoreAsksNoContextWhileItKeepsOthersOut(t *testing.T) {
	t.Parallel()
	s := newThings(t)
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	looks := 0
	_, err := s.Take(asked{gone, func() {
		looks++
		require.True(t, s.Store.mu.TryLock(), "its lock is free")
		s.Store.mu.Unlock()
	}}, "r")
	require.ErrorIs(t, err, context.Canceled)
	require.Positive(t, looks)
	require.Zero(t, s.opened, "nothing is opened under a context that has ended")
	s.use("r")
	_, err = s.Take(gone, "r")
	require.NoError(t, err, "what is there needs no waiting")
}
