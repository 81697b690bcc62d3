package scriptkit

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
)

// exact are options without chance.
func exact() Options { return Options{Retry: berth.Retry{Jitter: -1}} }

// simple takes one key and one argument and answers ok.
func simple(t testing.TB) *Script {
	t.Helper()
	return script(Script{
		Keys: []Key{{Name: "state", Type: "hash"}}, Args: []string{"value"}, Commands: []string{"HGET", "HSET"},
		Returns: []Return{{Status: "ok", Fields: []string{"value"}}},
	},
		`redis.call("HSET", KEYS[1], "f", ARGV[1]) return {"ok", redis.call("HGET", KEYS[1], "f")}`)
}

// run runs simple's script with a key and an argument.
func run(ctx context.Context, r *Runner, s *Script, mode Mode) (Reply, error) {
	return r.Run(ctx, s, mode, []string{"{gpu}:state"}, []string{"secret"})
}

func TestRunSendsTheSourceAtOnceAndThenOnlyToAServerThatDoesNotKnowIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := simple(t)
		known := false
		server := newFakeServer(t, func(_ int, command []string) string {
			known = known || command[0] == "EVAL" && command[1] == s.Source()
			if !known {
				return "-NOSCRIPT No matching script. Please use EVAL.\r\n"
			}
			return table("ok", "1")
		})
		runner := NewRunner(server.client(t), exact())
		for i := range 4 {
			known = known && i != 2 // as after SCRIPT FLUSH
			r := must(run(t.Context(), runner, s, Once)).in(t)
			require.False(t, r.Unanswered)
		}
		require.Equal(t, [][]string{
			{"EVAL", s.Source(), "1", "{gpu}:state", "secret"},
			{"EVALSHA", s.SHA, "1", "{gpu}:state", "secret"},
			{"EVALSHA", s.SHA, "1", "{gpu}:state", "secret"},
			{"EVAL", s.Source(), "1", "{gpu}:state", "secret"},
			{"EVALSHA", s.SHA, "1", "{gpu}:state", "secret"},
		}, server.commands)
	})
}

func TestRunRefusesAWrongNumberOfKeysOrArgs(t *testing.T) {
	t.Parallel()
	fixed := script(Script{Keys: []Key{{Name: "a", Type: "set"}, {Name: "b", Type: "set"}}, Args: []string{"x"}}, `return {"ok"}`)
	several := script(Script{Keys: []Key{{Name: "a", Type: "set"}, {Name: "b", Type: "set"}}, Several: true}, `return {"ok"}`)
	require.NoError(t, several.checkCounts(2, 0))
	require.NoError(t, several.checkCounts(6, 0))
	group := script(Script{Args: []string{"x"}, Group: []string{"p", "q"}}, `return {"ok"}`)
	tests := []struct {
		name       string
		script     *Script
		keys, args int
		want       string
	}{
		{"too few keys", fixed, 1, 1, "invalid keys: the script takes 2 (a, b), not 1"},
		{"too many keys", fixed, 3, 1, "invalid keys: the script takes 2 (a, b), not 3"},
		{"half of the keys of a name", several, 3, 0, "invalid keys: the script takes 2 (a, b), not 3"},
		{"no keys of several names", several, 0, 0, "invalid keys: the script takes 2 (a, b), not 0"},
		{"too few args", fixed, 2, 0, "invalid args: the script takes 1 (x), not 0"},
		{"too many args", fixed, 2, 2, "invalid args: the script takes 1 (x), not 2"},
		{"too few args before a group", group, 0, 0, "invalid args: the script takes 1 (x) and groups of 2 (p, q), not 0"},
		{"half a group", group, 0, 4, "invalid args: the script takes 1 (x) and groups of 2 (p, q), not 4"},
	}
	for _, tt := range tests {
		runner := NewRunner(nil, Options{}) // nothing may be sent
		_, err := runner.Run(t.Context(), tt.script, Bounded, make([]string, tt.keys), make([]string, tt.args))
		require.ErrorIs(t, err, berth.ErrInvalidConfig, tt.name)
		require.ErrorContains(t, err, tt.want)
		require.Equal(t, []bool{false, false}, []bool{MaybeRan(err), Repeatable(err)}, tt.name)
	}
	for _, n := range []int{1, 3, 5} {
		require.NoError(t, group.checkCounts(0, n))
	}
	require.NoError(t, fixed.checkCounts(2, 1))
}

func TestWhatIsSentStandsBehindTheHeader(t *testing.T) {
	t.Parallel()
	file := "--[[\ns: test.\n]]\nreturn {\"ok\"}\n"
	require.Equal(t, "return {\"ok\"}\n", (&Script{File: &file, Header: 17}).Source())
}

func TestLibrary(t *testing.T) {
	t.Parallel()
	l := NewLibrary(script(Script{Name: "b"}, ""), script(Script{Name: "a"}, ""), script(Script{Name: "a_b"}, ""))
	var names []string
	for _, s := range l.Scripts() {
		names = append(names, s.Name)
		require.Same(t, s, l.Script(s.Name))
	}
	require.Equal(t, []string{"a", "a_b", "b"}, names)
	require.PanicsWithValue(t, `scriptkit: no script "c"`, func() { l.Script("c") })
}

func TestOptionsHaveTheDefaultsOfRetry(t *testing.T) {
	t.Parallel()
	want := Options{
		Retry: berth.Retry{
			Attempts: 20, Within: 10 * time.Second, Base: 20 * time.Millisecond, Factor: 2, Cap: time.Second, Jitter: 0.2,
		},
		CallTimeout: 3 * time.Second,
	}
	require.Equal(t, want, Options{}.withDefaults())
	require.NoError(t, Options{}.Validate())
	require.NoError(t, want.Validate())
	require.Equal(t, want, want.withDefaults())
	require.Zero(t, Options{Retry: berth.Retry{Jitter: -1}}.withDefaults().Retry.Jitter)
}

func TestOptionsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	for field, o := range map[string]Options{
		"Retry.Attempts": {Retry: berth.Retry{Attempts: -1}},
		"Retry.Within":   {Retry: berth.Retry{Within: -1}},
		"Retry.Base":     {Retry: berth.Retry{Base: -1}},
		"Retry.Factor":   {Retry: berth.Retry{Factor: 0.5}},
		"Retry.Cap":      {Retry: berth.Retry{Cap: -1}},
		"Retry.Jitter":   {Retry: berth.Retry{Jitter: 1.5}},
		"CallTimeout":    {CallTimeout: -1},
	} {
		err := o.Validate()
		require.ErrorIs(t, err, berth.ErrInvalidConfig, field)
		require.ErrorContains(t, err, "invalid "+field)
		require.Equal(t, Options{}.withDefaults(), o.withDefaults(), field)
	}
	require.Error(t, Options{Retry: berth.Retry{Factor: math.NaN()}}.Validate())
	require.Error(t, Options{Retry: berth.Retry{Jitter: math.NaN()}}.Validate())
}

type valueKey struct{}

func TestAttemptsOfOneWindowShareItsEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := NewRunner(nil, Options{CallTimeout: 1600 * time.Millisecond})
		caller := context.WithValue(context.Background(), valueKey{}, "v")
		begun := time.Now()
		limit := func() context.Context {
			ctx, cancel := r.limit(caller, time.Now(), r.opts.CallTimeout)
			cancel()
			return ctx
		}

		first := limit()
		time.Sleep(100*time.Millisecond - 1)
		last := limit()
		time.Sleep(time.Nanosecond)
		next := limit()

		require.Equal(t, "v", first.Value(valueKey{}))
		require.Equal(t, begun.Add(1600*time.Millisecond), deadline(first))
		require.Equal(t, deadline(first), deadline(last))
		require.Equal(t, begun.Add(1700*time.Millisecond), deadline(next))
		require.NoError(t, last.Err())

		<-last.Done()
		require.Equal(t, 1600*time.Millisecond, time.Since(begun))
		require.Equal(t, context.DeadlineExceeded, first.Err())
		require.NoError(t, next.Err())
		<-next.Done()
		require.Equal(t, 1700*time.Millisecond, time.Since(begun))
	})
}

func TestOtherLimitsAreNotShared(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := NewRunner(nil, Options{})
		caller, leave := context.WithCancel(t.Context())
		ctx, cancel := r.limit(caller, time.Now(), r.opts.CallTimeout)
		defer cancel()
		leave()
		require.Equal(t, context.Canceled, ctx.Err())

		_, cancel = r.limit(context.Background(), time.Now(), r.opts.CallTimeout)
		defer cancel()
		short, cancel := r.limit(context.Background(), time.Now(), time.Second)
		defer cancel()
		require.Equal(t, time.Now().Add(time.Second), deadline(short))
	})
}

func deadline(ctx context.Context) time.Time {
	d, _ := ctx.Deadline()
	return d
}

func TestReplyReadsNumbersAndText(t *testing.T) {
	t.Parallel()
	s := script(Script{Returns: []Return{{Status: "ok", Fields: []string{"number", "negative", "digits", "fence", "text", "empty"}}}},
		`return {"ok", 42, -7, "13", string.format("%.0f", 1765432109876543), "a b", ""}`)
	synctest.Test(t, func(t *testing.T) {
		client, _ := embedded(t)
		r := must(NewRunner(client, Options{}).Run(t.Context(), s, Once, nil, nil)).in(t)
		require.Equal(t, "ok", r.Status())
		require.Equal(t, 7, r.Len())
		require.Equal(t, []int64{42, -7, 13, 1765432109876543}, []int64{r.Int(1), r.Int(2), r.Int(3), r.Int(4)})
		require.Equal(t, []string{"ok", "42", "-7", "13", "a b", ""},
			[]string{r.Str(0), r.Str(1), r.Str(2), r.Str(3), r.Str(5), r.Str(6)})
		require.NoError(t, r.Err())
	})
}

func TestReplyKeepsItsFirstError(t *testing.T) {
	t.Parallel()
	s := script(Script{Returns: []Return{{Status: "ok", Fields: []string{"text", "list", "none", "last"}}}}, `return {"ok", "12x", {1}, false, 5}`)
	tests := []struct {
		name string
		read func(r *Reply)
		want string
	}{
		{"text as a number", func(r *Reply) { r.Int(1) }, `berth: script s: element 1 (text) of the reply "ok" is text that is not a whole number`},
		{"a table as a number", func(r *Reply) { r.Int(2) }, `berth: script s: element 2 (list) of the reply "ok" is not a number`},
		{"a table as text", func(r *Reply) { r.Str(2) }, `berth: script s: element 2 (list) of the reply "ok" is not text`},
		{"nothing as a number", func(r *Reply) { r.Int(3) }, `berth: script s: element 3 (none) of the reply "ok" is not a number`},
		{"nothing as text", func(r *Reply) { r.Str(3) }, `berth: script s: element 3 (none) of the reply "ok" is not text`},
		{"an element too far", func(r *Reply) { r.Int(5) }, `berth: script s: element 5 of the reply "ok" is missing`},
		{"an element before the first", func(r *Reply) { r.Str(-1) }, `berth: script s: element -1 of the reply "ok" is missing`},
		{"the first of two errors", func(r *Reply) { r.Int(9); r.Str(2) }, `berth: script s: element 9 of the reply "ok" is missing`},
	}
	synctest.Test(t, func(t *testing.T) {
		client, _ := embedded(t)
		runner := NewRunner(client, Options{})
		for _, tt := range tests {
			r, err := runner.Run(t.Context(), s, Once, nil, nil)
			require.NoError(t, err, tt.name)
			tt.read(&r)
			require.EqualError(t, r.Err(), tt.want, tt.name)
			require.EqualValues(t, 5, r.Int(4), "%s: what is there can still be read", tt.name)
			require.EqualError(t, r.Err(), tt.want, tt.name)
		}
	})
}

// A text is the reply that the header calls plain, whatever it says: "ok" is no status here.
func TestATextIsAPlainReply(t *testing.T) {
	t.Parallel()
	s := script(Script{Args: []string{"text"}, Returns: []Return{{Status: "ok"}, {Status: Plain, Fields: []string{"fence"}}}}, `return ARGV[1]`)
	for text, number := range map[string]int64{"1795470968951844": 1795470968951844, "ok": 0, "": 0} {
		synctest.Test(t, func(t *testing.T) {
			client, _ := embedded(t)
			r, err := NewRunner(client, Options{}).Run(t.Context(), s, Bounded, nil, []string{text})
			require.NoError(t, err)
			require.Equal(t, []any{Plain, 2, Plain, text}, []any{r.Status(), r.Len(), r.Str(0), r.Str(1)})
			require.NoError(t, r.Err())
			require.Equal(t, number, r.Int(1))
			require.Empty(t, r.Str(2))
			require.Error(t, r.Err(), "there is nothing behind it")
		})
	}
}

func TestAnswersOfAnotherShapeAreErrors(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`return {"other"}`: `the answer's status "other" is not in RETURNS`,
		`return "ok"`:      `the answer's status "plain" is not in RETURNS`,
		`return 1`:         "the answer is no table with a status",
		`return nil`:       "the answer is no table with a status",
		`return {}`:        "the answer is no table with a status",
		`return {1}`:       "the answer does not begin with a status",
		`return {{"ok"}}`:  "the answer does not begin with a status",
	} {
		s := script(Script{}, body)
		synctest.Test(t, func(t *testing.T) {
			client, _ := embedded(t)
			r, err := NewRunner(client, Options{}).Run(t.Context(), s, Bounded, nil, nil)
			require.EqualError(t, err, "berth: script s: "+want, body)
			require.Empty(t, r.Status())
			require.Zero(t, r.Len())
			require.Zero(t, r.Int(0))
			require.EqualError(t, r.Err(), "berth: element 0 of an empty reply is missing")
		})
	}
}
