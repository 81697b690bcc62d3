package values

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
)

func TestAValueIsMadeOnceAndClosedWhenItWasDroppedAndNobodyUsesIt(t *testing.T) {
	t.Parallel()
	// Each step is a letter: t takes, g gives, d drops, c closes all.
	for _, c := range []struct {
		name   string
		steps  string
		opened int
		closed []int
		idle   bool
	}{
		{"taken twice", "tt", 1, nil, false},
		{"given back it is kept", "tg", 1, nil, true},
		{"and is there for the next", "tgt", 1, nil, false},
		{"one of two has given it back", "ttg", 1, nil, false},
		{"dropped with a user", "td", 1, nil, false},
		{"dropped before the user gives", "tdg", 1, []int{1}, false},
		{"dropped before the first of two gives", "ttdg", 1, nil, false},
		{"dropped before both of two give", "ttdgg", 1, []int{1}, false},
		{"dropped without a user", "tgd", 1, []int{1}, false},
		{"dropped twice", "tgdd", 1, []int{1}, false},
		{"dropped and taken anew", "tgdt", 2, []int{1}, false},
		{"the new one beside the old one", "tdt", 2, nil, false},
		{"both have given", "tdtgg", 2, []int{1}, true},
		{"two were dropped under users", "tdtdtg", 3, nil, false},
		{"and all have given", "tdtdtggg", 3, []int{1, 2}, true},
		{"dropped without ever being taken", "d", 0, nil, false},
		{"given without being taken", "gtg", 1, nil, true},
		{"given once too often and dropped with a user", "tggtd", 1, nil, false},
		{"closed with a user", "tc", 1, []int{1}, false},
		{"closed with a user who gives later", "tcg", 1, []int{1}, false},
		{"closed and then dropped", "tcd", 1, []int{1}, false},
		{"closed with an old one and a new one in use", "tdtc", 2, []int{1, 2}, false},
		{"closed twice", "tgcc", 1, []int{1}, false},
		{"closed without any", "c", 0, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newThings(t)
			for _, step := range c.steps {
				switch step {
				case 't':
					s.use("r")
				case 'g':
					s.Give("r")
				case 'd':
					s.Drop("r")
				case 'c':
					s.Close()
				}
			}
			require.Equal(t, c.opened, s.opened)
			require.ElementsMatch(t, c.closed, s.closes())
			if c.idle {
				require.Equal(t, []string{"r"}, s.Idle())
			} else {
				require.Empty(t, s.Idle())
			}
		})
	}
}

func TestValuesOfDifferentResourcesHaveNothingInCommon(t *testing.T) {
	t.Parallel()
	s := newThings(t)
	a, b := s.use("a"), s.use("b")
	require.NotEqual(t, a.number, b.number)
	s.Give("a")
	require.Equal(t, []string{"a"}, s.Idle())
	s.Drop("b")
	require.Empty(t, s.closes())
	s.Drop("a")
	require.Equal(t, []int{a.number}, s.closes())
}

func TestWhatIsForgottenTakesNoRoom(t *testing.T) {
	t.Parallel()
	s := newThings(t)
	s.before = func(_ context.Context, resource string) error {
		if resource == "bad" {
			return errMyOwn
		}
		return nil
	}
	_, err := s.Take(context.Background(), "bad")
	require.ErrorIs(t, err, errMyOwn)
	s.use("good")
	s.Drop("good")
	s.Give("good")
	require.Empty(t, s.kept)
}

func TestWithoutOpenTheValueIsTheKeyAndNothingIsKept(t *testing.T) {
	t.Parallel()
	v := New[string](nil, func(string) error { panic("nothing is closed") }, nil)
	value, err := v.Take(context.Background(), "a\xff")
	require.NoError(t, err)
	require.Equal(t, "a\xff", value)
	require.Empty(t, v.Idle())
	v.Drop("a\xff")
	v.Give("a\xff")
	v.Close()
	_, err = v.Take(context.Background(), "a")
	require.ErrorIs(t, err, berth.ErrClosed)
}

func TestWithoutCloseAValueIsOnlyForgotten(t *testing.T) {
	t.Parallel()
	n := 0
	v := New(func(context.Context, string) (int, error) { n++; return n, nil }, nil, nil)
	for want := 1; want < 4; want++ {
		got, err := v.Take(context.Background(), "r")
		require.NoError(t, err)
		require.Equal(t, want, got)
		v.Give("r")
		v.Drop("r")
	}
	v.Close()
}

// Whatever happens at once, no value is closed under its user, and each that was
// opened is closed once in the end.
func TestNoValueIsClosedUnderAUser(t *testing.T) {
	t.Parallel()
	s := newThings(t)
	var inUse sync.Map // thing -> *atomic.Int64
	s.before = func(context.Context, string) error {
		if rand.IntN(8) == 0 {
			return errMyOwn
		}
		return nil
	}
	var closing atomic.Bool
	s.during = func(v thing) error {
		if users, ok := inUse.Load(v); ok && users.(*atomic.Int64).Load() != 0 && !closing.Load() {
			t.Errorf("%v was closed under a user", v)
		}
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	for range 8 {
		work.Go(func() {
			for range 500 {
				resource := fmt.Sprint(rand.IntN(3))
				stays := time.Duration(rand.IntN(20)) * time.Microsecond
				if rand.IntN(2) == 0 {
					stays = time.Hour // it gets a value, however slow the machine is
				}
				call, stop := context.WithTimeout(ctx, stays)
				v, err := s.Take(call, resource)
				stop()
				if err != nil {
					continue
				}
				users, _ := inUse.LoadOrStore(v, &atomic.Int64{})
				users.(*atomic.Int64).Add(1)
				switch rand.IntN(4) {
				case 0:
					s.Drop(resource)
				case 1:
					for _, idle := range s.Idle() {
						s.Drop(idle)
					}
				}
				users.(*atomic.Int64).Add(-1)
				s.Give(resource)
			}
		})
	}
	work.Wait()
	cancel()
	for _, k := range s.kept {
		require.Zero(t, k.users)
		require.Empty(t, k.dropped)
	}
	closing.Store(true)
	s.Close()
	require.Positive(t, s.made)
	require.Len(t, s.closes(), s.made)
}
