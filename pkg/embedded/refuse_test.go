package embedded

import (
	"context"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

func TestScriptKeysShareATag(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		keys    []string
		refused bool
	}{
		"no key":                  {nil, false},
		"one key":                 {[]string{"a"}, false},
		"one tag":                 {[]string{"{n}:a", "berth:sem:{n}:b", "{n}", "n"}, false},
		"no tag":                  {[]string{"a", "b"}, true},
		"two tags":                {[]string{"x:{a}", "x:{b}"}, true},
		"tag only in the first":   {[]string{"x:{a}", "x"}, true},
		"empty tag is no tag":     {[]string{"{}a", "{}b"}, true},
		"open tag is no tag":      {[]string{"{a", "{ab"}, true},
		"only the first tag":      {[]string{"{a}{x}", "{a}{y}"}, false},
		"the first closing brace": {[]string{"{a}x}", "{a}y}"}, false},
		"brace inside of a tag":   {[]string{"{{a}", "{{b}"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, client rueidis.Client) {
				ctx := context.Background()
				sha, err := client.Do(ctx, client.B().ScriptLoad().Script(`return "ran"`).Build()).ToString()
				require.NoError(t, err)
				byHash := client.Do(ctx, client.B().Evalsha().Sha1(sha).
					Numkeys(int64(len(c.keys))).Key(c.keys...).Build()).Error()
				_, byText := eval(client, `return "ran"`, c.keys)
				for _, err := range []error{byText, byHash} {
					if c.refused {
						require.EqualError(t, err, "CROSSSLOT Keys in request don't hash to the same slot")
					} else {
						require.NoError(t, err)
					}
				}
			})
		})
	}
}

// The arguments after the keys are no keys, and wrong counts are left to
// miniredis.
func TestScriptArgumentsAreNotKeys(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, client rueidis.Client) {
		got, err := eval(client, `return ARGV`, []string{"{n}"}, "{a}", "{b}")
		require.NoError(t, err)
		require.Equal(t, []any{"{a}", "{b}"}, got)

		for _, numkeys := range []string{"3", "-1", "x"} {
			err := client.Do(context.Background(),
				client.B().Arbitrary("EVAL", "return 1", numkeys, "a", "b").Build()).Error()
			require.Error(t, err)
			require.NotContains(t, err.Error(), "CROSSSLOT")
		}
		err = client.Do(context.Background(), client.B().Arbitrary("EVAL", "return 1").Build()).Error()
		require.ErrorContains(t, err, "wrong number of arguments")
	})
}

func TestIsNoCluster(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, client rueidis.Client) {
		err := client.Do(context.Background(), client.B().ClusterSlots().Build()).Error()
		require.EqualError(t, err, "This instance has cluster support disabled")
	})
}
