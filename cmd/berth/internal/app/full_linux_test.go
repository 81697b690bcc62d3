package app_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/pkg/node"
)

func TestAnOutputThatCannotBeWrittenIsNotTheServersFault(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	apptest.Got(apptest.LocksOf(t, s, node.Config{}).Lock(t.Context(), "gpu", nil))(t)
	for _, line := range []string{
		"check", "check --json", "sem ls", "lock ls", "lock show gpu --json", "pool ls", "pool add proxies a",
		"node ls", "node flush", "once ls", "leader ls", "--version", "run --help",
	} {
		full := apptest.Got(os.OpenFile("/dev/full", os.O_WRONLY, 0))(t)
		var errs bytes.Buffer
		code := apptest.Program(append([]string{"--redis", s.URL()}, strings.Fields(line)...), nil, full, &errs)
		require.NoError(t, full.Close())
		require.Equal(t, 74, code, "%s: %s", line, &errs)
		require.Equal(t, "berth: cannot write the output: write /dev/full: no space left on device\n", errs.String())
	}
}
