package integration

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/semaphore"
)

// refusals are values that are refused before anything is sent, and the field
// that the error names.
var refusals = []struct {
	what  string
	field string
	try   func(b *bed) error
}{
	{"no namespace characters", "Namespace", config(func(c *semaphore.Config) { c.Namespace = "a*b" })},
	{"a namespace with a brace", "Namespace", config(func(c *semaphore.Config) { c.Namespace = "a{b" })},
	{"a namespace with a line end", "Namespace", config(func(c *semaphore.Config) { c.Namespace = "a\n" })},
	{"a namespace that is too long", "Namespace", config(func(c *semaphore.Config) { c.Namespace = long })},
	{"a label that is too long", "Label", config(func(c *semaphore.Config) { c.Label = long })},
	{"a client's lease below 20 ms", "Lease", config(func(c *semaphore.Config) { c.Lease = 19 * time.Millisecond })},
	{"a client's lease of 20.5 ms", "Lease", config(func(c *semaphore.Config) { c.Lease = 20500 * time.Microsecond })},
	{"a negative lease", "Lease", config(func(c *semaphore.Config) { c.Lease = -time.Second })},
	{"a wait lease without end", "Lease", config(func(c *semaphore.Config) { c.Lease = berth.Forever })},
	{"a linger of half a millisecond", "Linger", config(func(c *semaphore.Config) { c.Linger = 500 * time.Microsecond })},
	{"a negative call timeout", "CallTimeout", config(func(c *semaphore.Config) { c.CallTimeout = -1 })},
	{"no policy", "CapacityPolicy", config(func(c *semaphore.Config) { c.CapacityPolicy = 7 })},

	{"an empty name", "name", named("", 1)},
	{"a name that is too long", "name", named(long, 1)},
	{"a name with an opening brace", "name", named("a{b", 1)},
	{"a name with a closing brace", "name", named("a}b", 1)},
	{"a name with a null byte", "name", named("a\x00b", 1)},
	{"a name with a control character", "name", named("a\u0085b", 1)},
	{"a name that is not UTF-8", "name", named("a\xffb", 1)},
	{"capacity 0", "capacity", named("x", 0)},
	{"a negative capacity", "capacity", named("x", -1)},
	{"a capacity beyond what sums allow", "capacity", named("x", 1<<40+1)},

	{"a negative weight", "Weight", options(semaphore.AcquireOptions{Weight: -1})},
	{"a weight above the capacity", "Weight", options(semaphore.AcquireOptions{Weight: 3})},
	{"a priority that is too high", "Priority", options(semaphore.AcquireOptions{Priority: 128})},
	{"a priority that is too low", "Priority", options(semaphore.AcquireOptions{Priority: -129})},
	{"a lease below 20 ms", "Lease", options(semaphore.AcquireOptions{Lease: 19 * time.Millisecond})},
	{"a lease of 20.5 ms", "Lease", options(semaphore.AcquireOptions{Lease: 20500 * time.Microsecond})},
	{"a maximum hold of 30.5 ms", "MaxHold", options(semaphore.AcquireOptions{MaxHold: 30500 * time.Microsecond})},
	{"a maximum hold below any lease", "MaxHold", options(semaphore.AcquireOptions{MaxHold: time.Millisecond})},
	{"a negative maximum wait", "MaxWait", options(semaphore.AcquireOptions{MaxWait: -1})},
	{"metadata beyond 16 KiB", "Meta", options(semaphore.AcquireOptions{Meta: map[string]string{"k": strings.Repeat("v", 16<<10)}})},
	{"an owner that is too long", "owner", func(b *bed) error {
		s := b.sem(b.client(semaphore.Config{}), "x", 2)
		_, err := s.Acquire(berth.WithOwner(b.within(patience), long), nil)
		return err
	}},

	{"a resize to 0", "capacity", resize(0)},
	{"a resize to less than 0", "capacity", resize(-5)},
	{"a token of another kind", "token.Kind", resume(berth.Token{Kind: "lock", Name: "x", Claim: "c", Node: "n"})},
	{"a token of another namespace", "token.Namespace", resume(berth.Token{Kind: "sem", Namespace: "other", Name: "x", Claim: "c", Node: "n"})},
	{"force-releasing in no name", "name", func(b *bed) error {
		return b.client(semaphore.Config{}).ReleaseByID(b.within(patience), "", "id")
	}},
	{"force-releasing nobody", "id", func(b *bed) error {
		return b.client(semaphore.Config{}).ReleaseByID(b.within(patience), "x", "")
	}},
	{"statistics of a bad name", "name", func(b *bed) (err error) {
		for _, err = range b.client(semaphore.Config{}).Stats(b.within(patience), "a{") {
			if err != nil {
				break
			}
		}
		return err
	}},
}

var long = strings.Repeat("x", 513)

func config(edit func(*semaphore.Config)) func(*bed) error {
	return func(b *bed) error {
		cfg := semaphore.Config{Namespace: b.ns}
		edit(&cfg)
		_, err := semaphore.New(b.admin, cfg)
		return err
	}
}

func named(name string, capacity int) func(*bed) error {
	return func(b *bed) error {
		_, err := b.client(semaphore.Config{}).Semaphore(name, capacity)
		return err
	}
}

func options(o semaphore.AcquireOptions) func(*bed) error {
	return func(b *bed) error {
		s := b.sem(b.client(semaphore.Config{}), "x", 2)
		_, err := s.Acquire(b.within(patience), &o)
		_, again := s.TryAcquire(b.within(patience), &o)
		if again == nil {
			return errors.New("TryAcquire takes what Acquire refuses")
		}
		return err
	}
}

func resize(capacity int) func(*bed) error {
	return func(b *bed) error {
		return b.sem(b.client(semaphore.Config{}), "x", 2).Resize(b.within(patience), capacity, &semaphore.ResizeOptions{Create: true})
	}
}

func resume(token berth.Token) func(*bed) error {
	return func(b *bed) error {
		_, err := b.client(semaphore.Config{}).Resume(b.within(patience), token)
		return err
	}
}

func TestBadInputIsRefusedAndNothingWritten(t *testing.T) {
	for _, test := range refusals {
		t.Run(test.what, func(t *testing.T) {
			b := shared(t)
			err := test.try(b)
			require.ErrorIs(t, err, berth.ErrInvalidConfig)
			var bad *berth.ConfigError
			require.ErrorAs(t, err, &bad)
			require.Equal(t, test.field, bad.Field)
			require.NotEmpty(t, bad.Problem)
			require.Empty(t, b.keys())
		})
	}
}

// The longest that is allowed goes through to the server and back.
func TestTheLargestInputIsTaken(t *testing.T) {
	b := shared(t)
	name := strings.Repeat("ö", 256)
	c := b.client(semaphore.Config{Label: strings.Repeat("l", 512), Lease: time.Second})
	s := b.sem(c, name, 1<<40)
	meta := map[string]string{"": "\x00\xff: ", "k": strings.Repeat("v", 16<<10-10)}
	ctx := berth.WithOwner(b.within(patience), strings.Repeat("o", 512))
	p, err := s.Acquire(ctx, &semaphore.AcquireOptions{Weight: 1 << 40, Priority: -128, Meta: meta})
	require.NoError(t, err)
	w := b.queue(s, &semaphore.AcquireOptions{Priority: 127, Meta: meta}, 1)
	for h, err := range s.Holders(ctx) {
		require.NoError(t, err)
		require.Equal(t, meta, h.Meta)
		require.Equal(t, 1<<40, h.Weight)
		require.Equal(t, berth.Owner(ctx), h.Owner)
	}
	for h, err := range s.Waiters(ctx) {
		require.NoError(t, err)
		require.Equal(t, meta, h.Meta)
		require.Equal(t, 127, h.Priority)
	}
	require.NoError(t, p.Release(ctx))
	require.NoError(t, w.got(b).Release(ctx))
	b.idle(name)
}

// verbs are all calls that touch the keys of a name.
var verbs = map[string]func(ctx context.Context, c *semaphore.Client, s *semaphore.Semaphore) error{
	"Acquire": func(ctx context.Context, _ *semaphore.Client, s *semaphore.Semaphore) error {
		_, err := s.Acquire(ctx, nil)
		return err
	},
	"TryAcquire": func(ctx context.Context, _ *semaphore.Client, s *semaphore.Semaphore) error {
		_, err := s.TryAcquire(ctx, nil)
		return err
	},
	"Resize": func(ctx context.Context, _ *semaphore.Client, s *semaphore.Semaphore) error {
		return s.Resize(ctx, 5, &semaphore.ResizeOptions{Create: true})
	},
	"Stats": func(ctx context.Context, _ *semaphore.Client, s *semaphore.Semaphore) error {
		_, err := s.Stats(ctx)
		return err
	},
	"ReleaseByID": func(ctx context.Context, c *semaphore.Client, s *semaphore.Semaphore) error {
		return c.ReleaseByID(ctx, s.Name(), "nobody")
	},
	"Holders": func(ctx context.Context, _ *semaphore.Client, s *semaphore.Semaphore) (err error) {
		for _, err = range s.Holders(ctx) {
			if err != nil {
				break
			}
		}
		return err
	},
	"Waiters": func(ctx context.Context, _ *semaphore.Client, s *semaphore.Semaphore) (err error) {
		for _, err = range s.Waiters(ctx) {
			if err != nil {
				break
			}
		}
		return err
	},
}

func TestAKeyOfAnotherTypeInTheWay(t *testing.T) {
	for verb, call := range verbs {
		for _, part := range []string{"state", "line"} {
			t.Run(verb+" with a string as "+part, func(t *testing.T) {
				b := shared(t)
				c := b.client(semaphore.Config{})
				key := map[string]string{"state": b.stateKey("x"), "line": b.lineKey("x")}[part]
				b.do("SET", key, "somebody's")
				err := call(b.within(patience), c, b.sem(c, "x", 1))
				// What does not look at a key is not in its way.
				if err == nil || errors.Is(err, berth.ErrNotHeld) {
					require.Contains(t, []string{"Holders line", "Waiters line", "ReleaseByID line", "Stats line"}, verb+" "+part)
				} else {
					require.ErrorContains(t, err, key)
					require.ErrorContains(t, err, "string")
				}
				require.Equal(t, []string{key}, b.keys(), "something was written")
				value, err := b.do("GET", key).ToString()
				require.NoError(t, err)
				require.Equal(t, "somebody's", value)
				ttl, err := b.do("PTTL", key).AsInt64()
				require.NoError(t, err)
				require.EqualValues(t, -1, ttl, "somebody's key was given an expiry")
			})
		}
	}
}

// fields are those of a hash.
func (b *bed) fields(key string) map[string]string {
	b.Helper()
	fields, err := b.do("HGETALL", key).AsStrMap()
	require.NoError(b, err)
	return fields
}

// The same where the name is known already, and idle, so that it has no line of
// its own.
func TestAKeyOfAnotherTypeInTheWayOfAnIdleName(t *testing.T) {
	for verb, call := range verbs {
		t.Run(verb, func(t *testing.T) {
			b := shared(t)
			c := b.client(semaphore.Config{})
			s := b.sem(c, "x", 1)
			require.NoError(t, b.take(s, nil).Release(b.within(patience)))
			b.do("SET", b.lineKey("x"), "somebody's")
			before := b.fields(b.stateKey("x"))
			err := call(b.within(patience), c, s)
			if err == nil || errors.Is(err, berth.ErrNotHeld) {
				require.Contains(t, []string{"Holders", "Waiters", "ReleaseByID"}, verb)
			} else {
				require.ErrorContains(t, err, b.lineKey("x"))
				require.Equal(t, before, b.fields(b.stateKey("x")), "the state was written")
			}
			ttl, err := b.do("PTTL", b.lineKey("x")).AsInt64()
			require.NoError(t, err)
			require.EqualValues(t, -1, ttl, "somebody's key was given an expiry")
		})
	}
}

// A name that a newer release has written is left alone.
func TestANewerFormatIsLeftAlone(t *testing.T) {
	for verb, call := range verbs {
		t.Run(verb, func(t *testing.T) {
			b := shared(t)
			c := b.client(semaphore.Config{})
			b.do("HSET", b.stateKey("x"), "fmt", "2", "counts", "what is a capacity?")
			err := call(b.within(patience), c, b.sem(c, "x", 1))
			require.ErrorIs(t, err, berth.ErrIncompatible)
			require.ErrorContains(t, err, `"x"`)
			require.Equal(t, []string{b.stateKey("x")}, b.keys())
			require.Len(t, b.fields(b.stateKey("x")), 2)
		})
	}
}
