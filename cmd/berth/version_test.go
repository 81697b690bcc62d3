package main

import (
	"encoding/json"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVersionNeedsNoServer(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"version"}, {"--version"}} {
		got := call(t, nobody, args...)
		require.Equal(t, 0, got.code, got.err)
		require.Regexp(t, `^berth version .*, go1\.\d+.*\n$`, got.out)
		var document struct{ Version, Go string }
		require.NoError(t, json.Unmarshal([]byte(call(t, nobody, append(args, "--json")...).out), &document))
		require.Regexp(t, "^berth version "+regexp.QuoteMeta(document.Version)+", (.*, )?"+regexp.QuoteMeta(document.Go)+"\n$", got.out)
	}
}
