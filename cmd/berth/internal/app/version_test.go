package app_test

import (
	"encoding/json"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/cmd/berth/internal/apptest"
)

func TestVersionNeedsNoServer(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"version"}, {"--version"}} {
		got := apptest.Call(t, apptest.Nobody, args...)
		require.Equal(t, 0, got.Code, got.Err)
		require.Regexp(t, `^berth version .*, go1\.\d+.*\n$`, got.Out)
		var document struct{ Version, Go string }
		require.NoError(t, json.Unmarshal([]byte(apptest.Call(t, apptest.Nobody, append(args, "--json")...).Out), &document))
		require.Regexp(t, "^berth version "+regexp.QuoteMeta(document.Version)+", (.*, )?"+regexp.QuoteMeta(document.Go)+"\n$", got.Out)
	}
}
