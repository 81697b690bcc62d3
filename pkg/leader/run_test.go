package leader_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/leader"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
	"github.com/berth-go/berth/pkg/qlock"
)

// for the given time f works; then it returns err.
func works(d time.Duration, err error) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-time.After(d):
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func TestWhoReturnsResignsAndTheNextLeadsInTheSameMoment(t *testing.T) {
	each(t, map[string]error{"nil": nil, "an error": errOwn}, func(t *testing.T, w *world, want error) {
		a := w.node().stand(nil, works(time.Second, want))
		b := w.node().stand(nil, nil)
		require.True(t, a.leads())
		require.Equal(t, 1, w.waiting())
		w.Advance(time.Second)
		require.ErrorIs(t, a.returned(), want)
		require.Equal(t, time.Second, b.only().from, "no lease passes")
		require.Greater(t, b.only().fence, a.only().fence)
		require.ErrorIs(t, a.only().ctx.Err(), context.Canceled)
		ended := a.n.Told(observe.TermEnded)
		require.Len(t, ended, 1)
		require.NoError(t, ended[0].Err)
		require.Equal(t, time.Second, ended[0].Held)
	})
}

func TestATermIsNeverReportedAsForgottenAndALockOfTheNodeIs(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node(node.Config{WarnHeldLongerThan: time.Minute})
		a := n.stand(nil, nil)
		lock, err := qlock.New(n.Node, qlock.Config{}).Lock(t.Context(), "other", nil)
		require.NoError(t, err)
		w.Advance(time.Hour)
		require.True(t, a.leads())
		told := n.Told(observe.HeldLong)
		require.Len(t, told, 1)
		require.Equal(t, "other", told[0].Name)
		require.NoError(t, lock.Release(t.Context()))
	})
}

func TestPanicAndGoexitHandOnAndGoOn(t *testing.T) {
	each(t, map[string]any{"panic": errOwn, "Goexit": nil}, func(t *testing.T, w *world, panics any) {
		a := w.node()
		var met any
		over, ran := make(chan struct{}), false
		go func() {
			defer close(over)
			defer func() { met = recover() }()
			_ = a.election(nil).Run(context.Background(), func(context.Context) error {
				<-time.After(time.Second)
				if panics == nil {
					runtime.Goexit()
				}
				panic(panics)
			})
			ran = true
		}()
		synctest.Wait()
		b := w.node().stand(nil, nil)
		<-over
		synctest.Wait()
		require.False(t, ran, "it goes on through Run")
		require.Equal(t, panics, met)
		require.Equal(t, time.Second, b.only().from)
	})
}

func TestTheEndOfItsContextEndsRun(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		a := n.stand(nil, func(ctx context.Context) error {
			<-ctx.Done()
			<-time.After(time.Second) // it winds up
			return nil
		})
		b, c := w.node().stand(nil, nil), w.node().stand(nil, nil)
		w.Advance(lease)
		c.Cancel(errOwn)
		require.ErrorIs(t, c.returned(), context.Canceled)
		require.ErrorIs(t, c.returned(), errOwn)
		require.Empty(t, c.all())
		a.Cancel(errOwn)
		synctest.Wait()
		require.False(t, a.leads())
		w.Advance(time.Second - 1)
		require.Empty(t, b.all(), "who winds up still leads")
		w.Advance(1)
		require.NoError(t, a.returned(), "what f has returned")
		require.Equal(t, lease+time.Second, b.only().from)
		require.Equal(t, lease, a.only().ended)

		d := n.standOn(a.only().ctx, nil, nil) // it has ended
		require.ErrorIs(t, d.returned(), context.Canceled)
		require.Empty(t, d.all())
	})
}

// What f returns after a loss counts for nothing, whatever it is.
func TestWhoHasLostLeadershipStandsAgainWhenFHasReturned(t *testing.T) {
	each(t, map[string]error{"nil": nil, "an error of its own": errOwn}, func(t *testing.T, w *world, answer error) {
		n, op := w.node(), w.node()
		a := n.stand(nil, func(ctx context.Context) error {
			<-ctx.Done()
			<-time.After(10 * time.Second) // it heeds late
			return answer
		})
		b := w.node().stand(nil, nil)
		w.Advance(time.Second)
		_, err := op.Operator().Release(context.Background(), berth.Target{Kind: keyspace.Lock, Name: boss})
		require.NoError(t, err)
		synctest.Wait()
		require.False(t, a.leads())
		require.ErrorIs(t, context.Cause(a.only().ctx), berth.ErrReleased)
		require.Equal(t, time.Second, b.only().from)
		w.Advance(9 * time.Second)
		require.Zero(t, w.waiting(), "f has not returned")
		w.Advance(time.Second)
		require.Equal(t, 1, w.waiting(), "it stands again")
		b.Cancel(nil)
		synctest.Wait()
		require.Len(t, a.all(), 2)
		require.True(t, a.leads())
		require.Greater(t, a.all()[1].fence, b.only().fence)
	})
}

func TestWhoIsWantedBackLeadsUntilFReturnsAndStandsAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		op := w.node()
		a := w.node().stand(nil, func(ctx context.Context) error {
			<-ctx.Done()
			<-time.After(2 * lease)
			return errOwn
		})
		b := w.node().stand(nil, nil)
		w.Advance(time.Second)
		w.want(op)
		require.False(t, a.leads())
		require.Equal(t, leader.ErrWanted, context.Cause(a.only().ctx))
		w.Advance(2*lease - 1)
		require.Empty(t, b.all(), "f has not returned, and its hold is renewed")
		w.Advance(1)
		require.Equal(t, time.Second+2*lease, b.only().from)
		require.Equal(t, 1, w.waiting(), "it stands again")

		b.Cancel(nil)
		synctest.Wait()
		require.True(t, a.leads(), "as nobody else stands")
	})
}

func TestWhoKeepsItsContextHearsOfWanted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n, op := w.node(), w.node()
		answer := error(nil)
		a := n.stand(&leader.Config{KeepWhenWanted: true}, func(ctx context.Context) error {
			<-n.election(nil).Wanted(ctx)
			<-time.After(time.Second)
			return answer
		})
		require.Nil(t, n.election(nil).Wanted(context.Background()))
		w.want(op)
		require.True(t, a.leads(), "its context lives")
		w.Advance(time.Second)
		require.Len(t, a.all(), 2, "it stood again")
		answer = errOwn
		w.want(op)
		w.Advance(time.Second)
		require.ErrorIs(t, a.returned(), errOwn, "an error under a context that lives ends Run")
	})
}

func TestADrainHasAProcessResignAndStayOutUntilItStops(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.node(node.Config{Label: "old"}).stand(nil, nil)
		b := w.node(node.Config{Label: "new"}).stand(nil, nil)
		c := w.node(node.Config{Label: "old"}).stand(nil, nil)
		w.Advance(time.Second)
		w.Notice("l:old", 0, "drain")
		w.Advance(5 * time.Second)
		require.False(t, a.leads())
		require.Equal(t, leader.ErrWanted, context.Cause(a.only().ctx))
		require.True(t, b.leads())
		require.Equal(t, a.only().by, b.only().from)
		require.Zero(t, w.waiting(), "they do not stand")
		refused := len(c.n.Told(observe.Refused))
		w.Advance(time.Minute)
		require.Zero(t, w.waiting())
		require.Len(t, c.n.Told(observe.Refused), refused, "nobody is told of that every second")
		w.Notice("l:old", 0, "stop")
		w.Advance(6 * time.Second)
		require.Equal(t, 2, w.waiting())
		require.True(t, b.leads())
	})
}

// What the server refuses, and what it does not answer, ends no Run.
func TestErrorsOfTheServerDelayACandidate(t *testing.T) {
	each(t, map[string]link.Fate{
		"a full server":     link.Refuse("OOM command not allowed when used memory > 'maxmemory'."),
		"rights":            link.Refuse("NOPERM this user has no permissions"),
		"a server at load":  link.Refuse("LOADING Redis is loading the dataset in memory"),
		"a lost connection": link.LoseRequest,
	}, func(t *testing.T, w *world, fate link.Fate) {
		n := w.node()
		n.OnCommand(func(c link.Command) link.Fate {
			if c.Name == "thin_acquire" || c.Name == "lock_acquire" {
				return fate
			}
			return link.Pass
		})
		a := n.stand(nil, nil)
		w.Advance(time.Minute)
		require.Empty(t, a.all())
		require.LessOrEqual(t, n.Count("thin_acquire"), 80, "it stays out in between")
		n.OnCommand(nil)
		w.Advance(5 * time.Second)
		require.True(t, a.leads())
	})
}

func TestAnOperatorWhoEndsAWaitDelaysACandidate(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, op := w.node().stand(nil, nil), w.node()
		b := w.node().stand(nil, nil)
		_, err := op.Operator().Release(context.Background(), berth.Target{Kind: keyspace.Lock, Name: boss, Claim: w.Waiters()[0].ID})
		require.NoError(t, err)
		synctest.Wait()
		require.Zero(t, w.waiting())
		w.Advance(time.Second)
		require.Equal(t, 1, w.waiting())
		require.True(t, a.leads())
		require.Empty(t, b.all())
	})
}

func TestEachCallOfAnElectionThatCannotBeUsedSaysWhy(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		none := func(context.Context) error { return nil }
		for field, test := range map[string]struct {
			name string
			cfg  leader.Config
		}{
			"name":      {"{", leader.Config{}},
			"node":      {boss, leader.Config{}},
			"Lease":     {boss, leader.Config{Lease: berth.Forever}},
			"MaxHold":   {boss, leader.Config{MaxHold: ms}},
			"Priority":  {boss, leader.Config{Priority: 128}},
			"WantAfter": {boss, leader.Config{WantAfter: 1}},
		} {
			n := w.node()
			n.Fresh()
			e := leader.New(n.Node, test.name, test.cfg)
			if field == "node" {
				e = leader.New(nil, test.name, test.cfg)
			}
			_, current := e.Current(context.Background())
			errs := map[string]error{"Run": e.Run(context.Background(), none), "Current": current}
			for _, err := range e.Watch(context.Background()) {
				errs["Watch"] = err
			}
			if field != "node" && field != "name" { // it is another node, and a name may be a stranger's
				_, errs["Check"] = n.Check(context.Background())
			}
			for call, err := range errs {
				var refused *berth.ConfigError
				require.ErrorAs(t, err, &refused, call)
				require.Equal(t, field, refused.Field, call)
			}
			require.Contains(t, errs, "Watch")
			require.Zero(t, e.Fence(context.Background()))
			require.Nil(t, e.Wanted(context.Background()))
			require.NoError(t, e.Close(context.Background()))
			require.Empty(t, n.Counts(), "nothing is sent")
		}
		var refused *berth.ConfigError
		require.ErrorAs(t, w.node().election(nil).Run(context.Background(), nil), &refused)
		require.Equal(t, "f", refused.Field)
	})
}

// Who leads cannot wait to lead.
func TestWhoLeadsAlreadyIsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		a := n.stand(nil, func(ctx context.Context) error {
			require.NotEmpty(t, berth.Owner(ctx))
			return n.election(nil).Run(ctx, func(context.Context) error { return nil })
		})
		require.ErrorIs(t, a.returned(), berth.ErrDeadlock)
	})
}

func TestACandidateHasTheOptionsOfItsElection(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, low := w.node().stand(nil, nil), w.node().stand(nil, nil)
		b := w.node().stand(&leader.Config{
			Lease: 2 * lease, MaxHold: time.Minute, Priority: 3, WantAfter: time.Minute, Meta: map[string]string{"zone": "b"},
		}, nil)
		w.Advance(time.Minute - ms)
		require.Equal(t, 3, w.Waiters()[0].Priority)
		require.True(t, a.leads())
		w.Advance(3 * lease) // it asks with a heartbeat, which a may hear with one of its own
		require.Equal(t, leader.ErrWanted, context.Cause(a.only().ctx))
		require.True(t, b.leads())
		h := w.Holders()[0]
		require.Equal(t, 2*lease, h.Lease)
		require.Equal(t, map[string]string{"zone": "b", "berth": "leader"}, h.Meta)
		w.Until(b.only().from + time.Minute + 50*ms)
		require.ErrorIs(t, context.Cause(b.only().ctx), berth.ErrExpired, "MaxHold bounds a term")
		require.True(t, low.leads())
		require.LessOrEqual(t, b.only().ended, low.only().from)
	})
}
