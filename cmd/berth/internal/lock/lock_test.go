package lock

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/cmd/berth/internal/apptest"
)

func TestLockLsAndExtend(t *testing.T) {
	t.Parallel()
	s, _ := apptest.LockScenery(t)
	got := apptest.Call(t, s.URL(), "lock", "ls")
	require.Zero(t, got.Code, got.Err)
	lines := strings.Split(got.Out, "\n")
	require.Equal(t, []string{"NAME", "FENCE", "HELD", "LEFT", "ENTRIES", "WAITING", "OWNER", "LABEL"}, strings.Fields(lines[0]))
	require.Regexp(t, `^disk 2 +\d{16} +[\d.]+m?s +forever +1 +0 +- +host/one/1$`, lines[1])
	require.Regexp(t, `^gpu +\d{16} +[\d.]+m?s +[\d.]+s +2 +2 +"order 66\\x1b\[2J" +host/one/1$`, lines[2])
	require.Len(t, lines, 4)

	var document locksDocument
	require.NoError(t, json.Unmarshal([]byte(apptest.Call(t, s.URL(), "lock", "ls", "--json").Out), &document))
	require.Equal(t, "berth", document.Namespace)
	require.Len(t, document.Locks, 2)
	require.Nil(t, document.Locks[0].LeftMs, "no end")
	require.Equal(t, "order 66\x1b[2J", document.Locks[1].Owner)
	require.Equal(t, 2, document.Locks[1].Waiting)

	refused := apptest.Call(t, s.URL(), "lock", "extend", "gpu", "--by", "10m")
	require.Equal(t, 64, refused.Code)
	got = apptest.Call(t, s.URL(), "lock", "extend", "gpu", "--by", "10m", "--force")
	require.Zero(t, got.Code, got.Err)
	require.Regexp(t, `^gpu: extended by 10m00s, 10m\d\ds left\n$`, got.Out)

	var extended extendDocument
	text := apptest.Call(t, s.URL(), "lock", "extend", "gpu", "--by", "2h", "--force", "--json").Out
	require.NoError(t, json.Unmarshal([]byte(text), &extended))
	require.Equal(t, int64(7_200_000), extended.ByMs)
	require.InDelta(t, time.Hour.Milliseconds(), *extended.LeftMs, float64(apptest.Patience.Milliseconds()), "the maximum hold bounds it")

	got = apptest.Call(t, s.URL(), "lock", "extend", "disk 2", "--by", "1s", "--force")
	require.Equal(t, apptest.Outcome(0, "disk 2: extended by 1s, forever left\n", ""), got)
}

func TestLockShow(t *testing.T) {
	t.Parallel()
	s, outer := apptest.LockScenery(t)
	got := apptest.Call(t, s.URL(), "lock", "show", "gpu")
	require.Zero(t, got.Code, got.Err)
	lines := strings.Split(got.Out, "\n")
	require.Regexp(t, `^gpu: held for [\d.]+m?s, (50|[34]\d(\.\d)?)s left, waiting 2$`, lines[0])
	require.Equal(t, "re-entered once, extended by 10s", lines[1])
	require.Equal(t, "Held by", lines[3])
	require.Equal(t, []string{"FENCE", "HELD", "LEASE", "LEFT", "OWNER", "LABEL", "CLAIM"}, strings.Fields(lines[4]))
	for _, line := range lines[5:7] {
		require.Regexp(t, `^\d{16} +[\d.]+m?s +40s, at most (1h00m|59m\d\ds) +[\d.]+s +"order 66\\x1b\[2J" +host/one/1 +[0-9a-f]{16}\.\w{20}$`, line)
	}
	require.Equal(t, "Waiting in line", lines[8])
	require.Equal(t, []string{"AHEAD", "PRIORITY", "WAITED", "ALIVE", "OWNER", "LABEL", "CLAIM"}, strings.Fields(lines[9]))
	require.Regexp(t, `^0 +7 +[\d.]+m?s +[\d.]+s +- +host/one/1 +\S+$`, lines[10])
	require.Regexp(t, `^1 +0 +[\d.]+m?s +[\d.]+s +- +host/one/1 +\S+$`, lines[11])

	queue := apptest.Call(t, s.URL(), "lock", "queue", "gpu")
	require.Zero(t, queue.Code, queue.Err)
	require.Equal(t, strings.Fields(lines[9]), strings.Fields(strings.Split(queue.Out, "\n")[0]))
	require.Equal(t, 3, strings.Count(queue.Out, "\n"))

	text := apptest.Call(t, s.URL(), "lock", "show", "gpu", "--json").Out
	require.NotContains(t, text, "weight")
	var document showLockDocument
	require.NoError(t, json.Unmarshal([]byte(text), &document))
	require.True(t, document.Held)
	require.Equal(t, "order 66\x1b[2J", document.Owner)
	require.Equal(t, outer.Fence(), document.Fence)
	require.Equal(t, 1, document.Reentry.Count)
	require.Equal(t, int64(10_000), document.Reentry.ExtendedMs)
	require.NotNil(t, document.Reentry.ExtendedAt)
	require.Nil(t, document.Reentry.WorkedThroughAt, "never")
	require.Len(t, document.Entries, 2)
	require.Equal(t, outer.ID(), document.Entries[0].Claim)
	require.Equal(t, map[string]string{"step": "render"}, document.Entries[0].Meta)
	require.Len(t, document.Waiters, 2)
	require.Equal(t, 7, document.Waiters[0].Priority)

	var line queueDocument
	require.NoError(t, json.Unmarshal([]byte(apptest.Call(t, s.URL(), "lock", "queue", "gpu", "--json").Out), &line))
	require.Len(t, line.Waiters, 2)
	require.Equal(t, document.Waiters[1].Claim, line.Waiters[1].Claim)
}

func TestLockShowOfAFreeLockInJSON(t *testing.T) {
	t.Parallel()
	got := apptest.Call(t, apptest.Server(t).URL(), "lock", "show", "gpu", "--json")
	require.Equal(t, 1, got.Code)
	require.JSONEq(t, `{
		"namespace": "berth", "name": "gpu", "held": false, "owner": "", "fence": 0, "leftMs": 0,
		"reentry": {"count": 0, "workedThroughAt": null, "extendedMs": 0, "lastLeaseMs": 0, "extendedAt": null},
		"entries": [], "waiters": []
	}`, got.Out)
	require.Equal(t, "berth: lock \"gpu\" in namespace \"berth\" is free: nobody holds it, and nobody waits for it\n", got.Err)
}
