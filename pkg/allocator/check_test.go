package allocator

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/observe"
)

func TestAnyBytesAreTheKeyOfAResourceUpToTheLimit(t *testing.T) {
	t.Parallel()
	for _, key := range []string{
		"a", "|b", "a|", "||", "#ALLOCATED", " ", "\n", "\x00", "\xff", "ключ", "{}", strings.Repeat("\xff", 1024),
	} {
		require.NoError(t, checkResource(key), "%q", key)
	}
	for _, c := range []struct{ key, says string }{
		{"", `berth: invalid resource: a key must not be empty`},
		{strings.Repeat("k", 1025), `berth: invalid resource: "` + strings.Repeat("k", 40) + `"... has 1025 bytes, more than 1024`},
	} {
		err := checkResource(c.key)
		require.ErrorIs(t, err, berth.ErrInvalidConfig)
		require.EqualError(t, err, c.says)
	}
}

func TestUniqueKeepsTheOrderAndTheCallersSlice(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ given, want []string }{
		{nil, []string{}},
		{[]string{"b", "a", "b", "", "a", ""}, []string{"b", "a", ""}},
		{[]string{"b", "a"}, []string{"b", "a"}},
	} {
		before := append([]string(nil), c.given...)
		require.Equal(t, c.want, unique(c.given))
		require.Equal(t, before, c.given)
	}
}

func TestAReasonIsCutBetweenCharacters(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return strings.Repeat("x", n) }
	for _, c := range []struct{ given, want string }{
		{"", ""},
		{long(512), long(512)},
		{long(513), long(512)},
		{long(510) + "я", long(510) + "я"},
		{long(511) + "яя", long(511)},
		{long(509) + "😀", long(509)},
		{long(508) + "😀x", long(508) + "😀"},
		{strings.Repeat("\xff", 600), strings.Repeat("\xff", 512)},
		{strings.Repeat("\x80", 600), strings.Repeat("\x80", 512)},
	} {
		require.Equal(t, c.want, cutReason(c.given), "%q", c.given)
	}
}

func TestAnAnswerOfSourceIsRefusedAsAWholeAndHasNoRepeats(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		given, want []string
		allowEmpty  bool
		says        string
	}{
		{[]string{"b", "a", "b", "\xff"}, []string{"b", "a", "\xff"}, false, ""},
		{nil, []string{}, true, ""},
		{nil, nil, false, "berth: Source returned no resources; AllowEmpty lets that empty the pool"},
		{[]string{"a", ""}, nil, true, "berth: element 1 of what Source returned: berth: invalid resource: a key must not be empty"},
	} {
		p := &Pool[string]{cfg: Config[string]{
			Source: func(context.Context) ([]string, error) { return c.given, nil }, AllowEmpty: c.allowEmpty,
		}}
		got, err := p.source(context.Background())
		require.Equal(t, c.want, got)
		if c.says == "" {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, c.says)
		}
	}
}

// Also where the list of what is to be checked is there already.
func TestNothingIsCheckedUnderAContextThatHasEnded(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(context.Background())
	mine := errors.New("my own reason")
	cancel(mine)
	h := health[string]{tell: func(observe.Event) {}} // with no way to lease
	free := func(yield func(ResourceInfo, error) bool) { yield(ResourceInfo{Resource: "a", State: Free}, nil) }
	report, err := h.run(ctx, free, 1)
	require.ErrorIs(t, err, mine)
	require.Zero(t, report)
}
