package semaphore_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/semaphore"
)

func TestAResizeIsOfANameThatIsThereAndKeepRemembersTheCapacityForGood(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		ops := semaphore.NewOperator(n.Node)
		for _, opts := range []*semaphore.ResizeOptions{nil, {Keep: true}} {
			require.ErrorIs(t, ops.Resize(ctx, gpu, 5, opts), berth.ErrAbsent)
			require.Empty(t, w.Keys(), "nothing was written")
		}
		require.NoError(t, ops.Resize(ctx, gpu, 5, &semaphore.ResizeOptions{Create: true}))
		require.Equal(t, 5, w.stats().Capacity)
		w.Advance(2 * time.Minute)
		require.ErrorIs(t, ops.Resize(ctx, gpu, 3, nil), berth.ErrAbsent, "it is forgotten")

		require.NoError(t, ops.Resize(ctx, gpu, 5, &semaphore.ResizeOptions{Keep: true, Create: true}))
		require.NoError(t, n.take(1, nil).Release(ctx))
		require.Equal(t, time.Duration(-1), w.Expiry())
		w.Advance(2 * time.Hour)
		require.Equal(t, 5, w.stats().Capacity)
		require.NoError(t, ops.Resize(ctx, gpu, 5, nil))
		require.Equal(t, w.Now()+2*time.Minute, w.Expiry(), "a linger after it is no longer known that it was set")
		w.Advance(2 * time.Minute)
		require.Empty(t, w.Keys())
		require.Zero(t, w.stats().Capacity)
	})
}

func TestAnUncontendedPermitCostsOneScriptEachWay(t *testing.T) {
	for capacity, scripts := range map[int]string{1: "thin", 2: "semaphore"} {
		inWorldOf(t, scripts, func(t *testing.T, w *world) {
			n := w.node()
			n.connect()
			dialed := n.Open()
			for _, ctx := range []context.Context{context.Background(), t.Context()} {
				for range 10 {
					w.Advance(time.Microsecond) // a fence lies behind the next one
					n.Reset()
					p := w.got(n.gpu(capacity).Acquire(ctx, nil))
					require.Equal(t, map[string]int{scripts + "_acquire": 1}, n.Counts())
					require.NoError(t, p.Release(ctx))
					require.Equal(t, map[string]int{scripts + "_acquire": 1, scripts + "_release": 1}, n.Counts())
				}
			}
			require.Equal(t, dialed, n.Open(), "nothing waited, so nothing is subscribed")
			w.RequireIdle()
		})
	}
}

func TestANewerFormatIsRefusedAndNothingIsWritten(t *testing.T) {
	for name, put := range map[string][]string{
		"format 4":       {"HSET", stateKey, "v", "4 0000000000000001 news"},
		"format 4, thin": {"SET", stateKey, "f4 0000000000000001 news"},
		"format 1":       {"HSET", stateKey, "fmt", "1", "counts", "1 1 0 0 0 0"},
	} {
		inWorldOf(t, name, func(t *testing.T, w *world) {
			n := w.node()
			w.Do(put...)
			if put[0] == "HSET" {
				w.Do("ZADD", lineKey, "1", "h:theirs")
			}
			before := w.Dump()
			err := testkit.Second(n.gpu(1).Acquire(ctx, nil))
			require.ErrorIs(t, err, berth.ErrNotAcquired)
			require.ErrorContains(t, err, name[:8])
			token := berth.Token{Kind: "sem", Namespace: "berth", Name: gpu, Claim: "theirs", Node: "x"}
			for _, err := range []error{
				err, testkit.Second(n.gpu(1).TryAcquire(ctx, nil)), testkit.Second(n.Resume(ctx, token)),
				n.resize(3), n.end("theirs"),
			} {
				require.ErrorIs(t, err, berth.ErrIncompatible)
			}
			n.Shut()
			require.Equal(t, before, w.Dump())
			require.EqualValues(t, -1, w.Int("PTTL", stateKey))
		})
	}
}

func TestAKeyOfAnotherTypeInTheWayIsNamed(t *testing.T) {
	for _, c := range []struct {
		key      string
		capacity int
		words    []string
	}{
		{stateKey, 1, []string{"SET", stateKey, "theirs"}},
		{stateKey, 1, []string{"SET", stateKey, "sixteen letters."}},
		{stateKey, 1, []string{"SADD", stateKey, "theirs"}},
		{stateKey, 2, []string{"SET", stateKey, "theirs"}},
		{lineKey, 2, []string{"HSET", lineKey, "their", "own"}}, // a thin name has no line
	} {
		inWorldOf(t, fmt.Sprint(c.words, c.capacity), func(t *testing.T, w *world) {
			n := w.node()
			w.Do(c.words...)
			_, err := n.gpu(c.capacity).Acquire(context.Background(), nil)
			require.ErrorIs(t, err, berth.ErrNotAcquired)
			require.ErrorContains(t, err, c.key)
			n.Shut()
			require.Equal(t, []string{c.key}, w.Keys(), "nothing is written")
		})
	}
}

func TestBadInputIsRefusedBeforeAnythingIsSent(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		ops := semaphore.NewOperator(n.Node)
		n.Reset()
		made := func(cfg semaphore.Config) error {
			return testkit.Second(semaphore.New(n.Node, gpu, 1, cfg).Acquire(ctx, nil))
		}
		refuse := func(field string, err error) {
			t.Helper()
			require.ErrorIs(t, err, berth.ErrInvalidConfig)
			var bad *berth.ConfigError
			require.ErrorAs(t, err, &bad)
			require.Equal(t, field, bad.Field)
			require.ErrorContains(t, err, field)
		}
		for _, name := range []string{"", strings.Repeat("x", 513), "a{b", "a}b", "a\x00b", "a\nb", "\xff"} {
			_, err := n.on(name).Acquire(ctx, nil)
			refuse("name", err)
			if name != "" { // with none, a claim needs one
				_, err = n.Operator().Release(ctx, berth.Target{Kind: keyspace.Sem, Name: name, Claim: "x"})
				refuse("name", err)
			}
			_, err = n.Operator().Sweep(ctx, keyspace.Sem, name)
			refuse("name", err)
			refuse("name", ops.Resize(ctx, name, 2, nil))
		}
		for _, capacity := range []int{0, -1, 1<<40 + 1} {
			_, err := n.gpu(capacity).Acquire(ctx, nil)
			refuse("capacity", err)
			refuse("capacity", ops.Resize(ctx, gpu, capacity, nil))
		}
		for _, target := range []berth.Target{
			{}, {Claim: "x"}, {All: true, Name: gpu}, {All: true, Node: "n"},
		} {
			_, err := n.Operator().Release(ctx, target)
			refuse("Target", err)
		}
		for field, all := range map[string][]semaphore.AcquireOptions{
			"Weight":    {{Weight: -1}, {Weight: 1<<40 + 1}},
			"Priority":  {{Priority: 128}, {Priority: -129}},
			"Lease":     {{Lease: 19 * ms}, {Lease: 20*ms + ms/2}, {Lease: -time.Second}},
			"MaxHold":   {{MaxHold: 19 * ms}, {MaxHold: 20*ms + 1}, {MaxHold: -time.Second}},
			"MaxWait":   {{MaxWait: -1}},
			"WantAfter": {{WantAfter: -1}, {WantAfter: 19 * ms}},
			"Meta":      {{Meta: map[string]string{"k": strings.Repeat("x", 16<<10)}}},
		} {
			for _, opts := range all {
				refuse(field, testkit.Second(n.gpu(1).Acquire(ctx, &opts)))
				refuse(field, testkit.Second(n.gpu(1).TryAcquire(ctx, &opts)))
				refuse("Defaults."+field, made(semaphore.Config{Defaults: opts}))
			}
		}
		_, err := n.gpu(1).TryAcquire(ctx, &semaphore.AcquireOptions{MaxWait: time.Second})
		refuse("MaxWait", err)
		refuse("WantAfter", testkit.Second(n.gpu(1).TryAcquire(ctx, &semaphore.AcquireOptions{WantAfter: time.Second})))
		refuse("Defaults.NoDefaults", made(semaphore.Config{Defaults: semaphore.AcquireOptions{NoDefaults: true}}))
		refuse("CapacityPolicy", made(semaphore.Config{CapacityPolicy: 3}))
		_, err = n.gpu(1).Acquire(berth.WithOwner(ctx, strings.Repeat("x", 513)), nil)
		refuse("owner", err)
		token := berth.Token{Kind: "sem", Namespace: "berth", Name: gpu, Claim: "c", Node: "n"}
		for field, change := range map[string]func(*berth.Token){
			"token.Kind":      func(t *berth.Token) { t.Kind = "lock" },
			"token.Namespace": func(t *berth.Token) { t.Namespace = "other" },
			"token.Name":      func(t *berth.Token) { t.Name = "other" },
			"token":           func(t *berth.Token) { t.Claim = "" },
		} {
			bad := token
			change(&bad)
			_, err := n.Resume(ctx, bad)
			refuse(field, err)
		}
		require.Empty(t, n.Counts(), "nothing was sent")
		require.Empty(t, w.Keys())

		_, err = n.gpu(1).Acquire(ctx, &semaphore.AcquireOptions{Weight: 2})
		refuse("Weight", err) // only the server knows the capacity
		var refusal *berth.AcquireError
		require.ErrorAs(t, err, &refusal)
		require.Equal(t, berth.ReasonTooHeavy, refusal.Reason)
		n.Shut()
		require.Empty(t, w.Keys())
	})
}

// New has no error: each call returns what is wrong with the arguments of New, and so does Check of the node.
func TestBadArgumentsOfNewAreWhatEachCallReturns(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		held, cancel := context.WithTimeout(n.take(1, nil).Context(), time.Second)
		defer cancel()
		n.Reset()
		f := func(context.Context) error { return errMine }
		bad := n.gpu(0)
		for field, s := range map[string]*semaphore.Semaphore{"capacity": bad, "node": semaphore.New(nil, gpu, 1, semaphore.Config{})} {
			for call, err := range map[string]error{
				"Acquire":    testkit.Second(s.Acquire(held, nil)),
				"TryAcquire": testkit.Second(s.TryAcquire(held, nil)),
				"Do":         s.Do(held, nil, f),
				"TryDo":      s.TryDo(held, nil, f),
				"Resume":     testkit.Second(s.Resume(held, berth.Token{})),
			} {
				var refused *berth.ConfigError
				require.ErrorAs(t, err, &refused, call)
				require.Equal(t, field, refused.Field, call)
			}
			require.Zero(t, s.Fence(held))
			require.Nil(t, s.Wanted(held))
			require.Equal(t, gpu, s.Name())
		}
		require.ErrorIs(t, semaphore.NewOperator(nil).Resize(held, gpu, 1, nil), berth.ErrInvalidConfig)
		require.Same(t, testkit.Second(bad.Acquire(held, nil)), testkit.Second(n.Check(held)))
		require.Empty(t, n.Counts(), "nothing is sent")
	})
}

// What is in the way of those who wait ends nobody's hold.
func TestAKeyInThePlaceOfTheLineOfAThinNameIsNamedOnceThatIsNeeded(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		w.Do("HSET", lineKey, "their", "own")
		p := a.take(1, nil)
		before := w.text(stateKey)
		_, err := b.gpu(1).Acquire(context.Background(), nil)
		require.ErrorIs(t, err, berth.ErrNotAcquired)
		require.ErrorContains(t, err, lineKey)
		require.Equal(t, before, w.text(stateKey), "nothing is written")
		w.Advance(lease)
		require.NoError(t, p.Err())
		require.NoError(t, p.Release(context.Background()))
		require.Equal(t, int64(1), w.Int("HLEN", lineKey))
	})
}

// text is the text of a key.
func (w *world) text(key string) string {
	w.T.Helper()
	text, err := w.Do("GET", key).ToString()
	require.NoError(w.T, err)
	return text
}

// A state that was evicted or deleted leaves a line behind that nobody may be
// counted by.
func TestALineWithoutItsStateCountsForNothing(t *testing.T) {
	for _, capacity := range []int{1, 2} {
		inWorldOf(t, fmt.Sprint(capacity), func(t *testing.T, w *world) {
			n := w.node()
			w.Do("ZADD", lineKey, millis(state.Width+9999999999998), "h:ghost")
			w.Do("PEXPIRE", lineKey, "30000")
			p := n.take(capacity, nil)
			require.Equal(t, 1, w.stats().Holders)
			if thin := capacity == 1; thin { // nobody looks at its line
				require.True(t, w.Thin())
				w.Advance(30 * time.Second)
			} else {
				require.Equal(t, 66*time.Second, w.Expiry())
			}
			require.NoError(t, p.Release(context.Background()))
			w.RequireIdle()
		})
	}
}

// What a name's state keeps as a sum counts as nothing when nothing is held.
func TestALeakedSumIsForgottenWhenNothingIsHeld(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		require.NoError(t, n.take(2, nil).Release(context.Background()))
		w.SetCount("used", 2)
		require.NoError(t, testkit.Second(n.gpu(2).TryAcquire(context.Background(), nil)))
		require.EqualValues(t, 1, w.Field("used"))
	})
}

// An acquire that runs again after its hold has ended, and is then refused, must
// have given that hold back.
func TestARefusedReplayLeavesNothingHeld(t *testing.T) {
	for name, policy := range map[string]semaphore.CapacityPolicy{
		"differs": semaphore.CapacityStrict, "too_heavy": semaphore.CapacityStored,
	} {
		inWorldOf(t, name, func(t *testing.T, w *world) {
			heavy := func(r *engine.Record) { r.Weight = 2 }
			w.acquireScript("a", "a.1", 3, semaphore.CapacityStored, heavy)
			w.acquireScript("b", "b.1", 3, semaphore.CapacityStored, func(r *engine.Record) { r.Lease, r.Wait = time.Hour, time.Hour })
			w.Call("semaphore_resize", "60000", "c", gpu, "1", "0", "0", "0", "op.1")
			w.Advance(lease)
			r := w.acquireScript("a", "a.1", 3, policy, heavy)
			require.Equal(t, name, r.Status())
			require.Equal(t, 1, w.stats().Held)
		})
	}
}

// The line is deleted by hand, or evicted, and the state stays.
func TestALineThatIsDeletedStandsAgain(t *testing.T) {
	for name, die := range map[string]bool{"its holder lives": false, "its holder is dead": true} {
		inWorldOf(t, name, func(t *testing.T, w *world) {
			a, b := w.node(), w.node()
			p := a.take(2, &semaphore.AcquireOptions{Weight: 2})
			waits := []*wait{b.queue(2, nil), b.queue(2, &semaphore.AcquireOptions{Weight: 2}), b.queue(2, nil)}
			w.Until(500 * ms)
			if die {
				a.Die()
			}
			w.Do("DEL", lineKey)
			w.Until(lease/3 + 10*ms)
			require.False(t, waits[0].Pending())
			require.NoError(t, waits[0].Err)
			require.True(t, waits[1].Pending())
			require.Positive(t, w.Expiry())
			held := waits[0].Got
			for i, next := range waits[1:] {
				require.Equal(t, []int64{int64(i + 1), int64(2 - i)}, []int64{w.Field("used"), w.Field("waiting")})
				release(t, held)
				held = next.Granted(w.Now())
			}
			release(t, held)
			require.Zero(t, w.Field("used"))
			require.Zero(t, w.Field("waiting"))
			if !die {
				require.ErrorIs(t, p.Err(), berth.ErrLost)
				w.RequireIdle()
			}
		})
	}
}

// What is held since, and what was held before, are told apart.
func TestCountsAreMadeAnewWhereALineWasDeleted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		lost := a.take(5, &semaphore.AcquireOptions{Weight: 2})
		endless := a.take(5, &semaphore.AcquireOptions{Lease: berth.Forever})
		_ = lost.Renew(ctx)
		require.EqualValues(t, 1, w.Field("forever"))
		w.Do("DEL", lineKey)
		held := b.take(5, &semaphore.AcquireOptions{Weight: 2})
		require.EqualValues(t, 2, w.Field("used"), "what was in the line counts no more")
		q := b.queue(5, &semaphore.AcquireOptions{Weight: 3})
		w.Until(lease/3 + 10*ms)
		require.ErrorIs(t, lost.Err(), berth.ErrLost)
		require.ErrorIs(t, endless.Err(), berth.ErrLost)
		require.NoError(t, held.Err())
		require.NoError(t, q.Err)
		require.False(t, q.Pending())
		require.Equal(t, []int64{5, 0, 0}, []int64{w.Field("used"), w.Field("waiting"), w.Field("forever")})
		require.NoError(t, held.Release(ctx))
		require.NoError(t, q.Got.Release(ctx))
		w.RequireIdle()
	})
}

// Its own release finds the claim without an entry in the line.
func TestAReleaseOfAPermitWhoseLineWasDeletedSaysThatItWasLost(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		p := a.take(1, nil)
		q := b.queue(1, nil)
		w.Do("DEL", lineKey)
		require.ErrorIs(t, p.Release(ctx), berth.ErrLost)
		require.Zero(t, w.Field("used"))
		w.Until(lease/3 + 10*ms)
		require.False(t, q.Pending())
		require.NoError(t, q.Err)
	})
}

// It stalls nobody without a word, as a key of another type does.
func TestCountsThatAreNotOursAreAnErrorAndAreLeftAlone(t *testing.T) {
	each(t, map[string]func(values string) string{
		"rubbish":     func(string) string { return "rubbish" },
		"nothing":     func(string) string { return "" },
		"a few words": func(string) string { return "3 1 1" },
		"a letter":    func(values string) string { return values[:20] + "x" + values[21:] },
		"a word more": func(values string) string { return values + " 0" },
		"a word less": func(values string) string { return values[:len(values)-2] },
	}, func(t *testing.T, w *world, change func(values string) string) {
		a, b := w.node(), w.node()
		p := a.take(1, nil)
		q := b.queue(1, nil)
		before, err := w.Do("HGET", stateKey, "v").ToString()
		require.NoError(t, err)
		w.Do("HSET", stateKey, "v", change(before))
		dump := w.Dump()
		busy := testkit.Second(b.gpu(1).TryAcquire(ctx, nil))
		require.NotErrorIs(t, busy, berth.ErrBusy)
		require.NotErrorIs(t, busy, berth.ErrIncompatible)
		renewed := p.Renew(ctx)
		<-q.Done
		for _, err := range []error{busy, testkit.Second(w.Look()), renewed, q.Err} {
			require.ErrorContains(t, err, "is not Berth's")
		}
		q.Refused(q.At, berth.ReasonFailed)
		require.LessOrEqual(t, q.At, lease/3)
		require.Equal(t, dump, w.Dump())
		w.Do("HSET", stateKey, "v", before)
		release(t, p)
	})
}

// roundUp is when keys expire whose furthest deadline is at d: the linger is a
// minute, and they expire at a whole second.
func roundUp(d time.Duration) time.Duration {
	return (d + time.Minute + time.Second - 1).Truncate(time.Second)
}

func TestAllKeysExpireALingerAfterTheFurthestDeadline(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node()
		w.Advance(1700 * ms)
		all := func(opts semaphore.AcquireOptions) *semaphore.AcquireOptions { opts.Weight = 2; return &opts }
		p := n.take(2, all(semaphore.AcquireOptions{}))
		require.Equal(t, roundUp(w.Now()+lease), w.Expiry())
		require.Equal(t, 68*time.Second, w.Expiry())
		w.Advance(2 * time.Second) // renewed
		require.Equal(t, 70*time.Second, w.Expiry())
		q := n.queue(2, all(semaphore.AcquireOptions{Lease: time.Minute, NoRenew: true}))
		require.Equal(t, 70*time.Second, w.Expiry())

		require.NoError(t, p.Release(context.Background()))
		second := q.Granted(3700 * ms)
		require.Equal(t, roundUp(3700*ms+time.Minute), w.Expiry(), "confirmed for a minute")
		require.NoError(t, second.Release(context.Background()))
		require.ElementsMatch(t, []string{stateKey, lineKey}, w.Keys(), "they stay")
		w.Until(w.Expiry() - ms)
		require.ElementsMatch(t, []string{stateKey, lineKey}, w.Keys())
		w.Advance(ms)
		require.Empty(t, w.Keys())
	})
}

func TestAHandOffThatEmptiesTheLineKeepsItsExpiry(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(), w.node()
		p := a.take(1, nil)
		q := b.queue(1, nil)
		b.Deafen(true)
		b.Stall()
		require.NoError(t, p.Release(context.Background()))
		require.Equal(t, 66*time.Second, w.Expiry())
		b.Flow()
		b.Deafen(false)
		<-q.Done
	})
}
