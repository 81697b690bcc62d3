package scriptkit

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

func TestReplyReadsNumbersAndText(t *testing.T) {
	t.Parallel()
	s := script(Script{Returns: []Return{{Status: "ok", Fields: []string{"number", "negative", "digits", "fence", "text", "empty"}}}},
		`return {"ok", 42, -7, "13", string.format("%.0f", 1765432109876543), "a b", ""}`)
	synctest.Test(t, func(t *testing.T) {
		client, _ := embedded(t)
		r, err := NewRunner(client, Options{}).Run(t.Context(), s, Once, nil, nil)
		require.NoError(t, err)
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

func TestReplyThatCameWithAnErrorIsEmpty(t *testing.T) {
	t.Parallel()
	var r Reply
	require.Empty(t, r.Status())
	require.Zero(t, r.Len())
	require.Zero(t, r.Int(0))
	require.EqualError(t, r.Err(), "berth: element 0 of an empty reply is missing")
}

func TestAnswersOfAnotherShapeAreErrors(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`return {"other"}`: `the answer's status "other" is not in RETURNS`,
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
		})
	}
}
