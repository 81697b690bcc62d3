package app_test

import (
	"bufio"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
)

// TestWhatIsRepeatedEndsWellByAnInterrupt has a document a line, until something is seen to have changed.
func TestWhatIsRepeatedEndsWellByAnInterrupt(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, test := range []struct {
		args        []string
		first, then string
	}{
		{[]string{"ls", "--watch"}, `"waiting":1,`, `"kind":"pool"`},
		{[]string{"show", "nightly", "--watch=1s"}, `"kind":"lock"`, `"kind":"pool"`},
		{[]string{"ps", "--watch"}, `"kind":"lock"`, `"kind":"pool"`},
		{[]string{"events"}, `"event":"stuck","why":"nothing back"`, `"event":"no longer stuck"`},
	} {
		t.Run(test.args[0], func(t *testing.T) {
			t.Parallel()
			s := apptest.Server(t)
			locks := apptest.LocksOf(t, s, node.Config{})
			apptest.Got(locks.Lock(ctx, "nightly", nil))(t)
			go func() { _, _ = locks.Lock(ctx, "nightly", nil) }() // ends with the node
			apptest.WaitingFor(t, s, keyspace.Lock, "nightly")
			rests := apptest.Filled(t, s, "rests", "a")
			require.NoError(t, rests.Rest(ctx, "a", berth.Forever, "banned", nil))
			cmd := apptest.Command(t, s.URL(), append(test.args, "--json")...)
			out := bufio.NewReader(apptest.Got(cmd.StdoutPipe())(t))
			require.NoError(t, cmd.Start())
			until := func(mark string) {
				for line := ""; !strings.Contains(line, mark); {
					line = apptest.Got(out.ReadString('\n'))(t)
					require.True(t, strings.HasPrefix(line, "{") && strings.HasSuffix(line, "}\n"), line)
				}
			}
			until(test.first)
			apptest.Got(apptest.Filled(t, s, "nightly", "a").Allocate(ctx, nil))(t)
			require.NoError(t, rests.Rest(ctx, "a", 0, "", nil))
			until(test.then)
			apptest.Interrupt(t, cmd, time.Millisecond)
			require.NoError(t, cmd.Wait())
		})
	}
}
