package run

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/once"
)

// The time of day is as far from now as it can be from the edge of its period.
func TestACommandRunsOnceADayInATimeZone(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	zone, err := time.LoadLocation("Asia/Kathmandu") // which never changes its clocks
	require.NoError(t, err)
	now := time.Now().In(zone)
	daily := func(flags ...string) []string {
		return append([]string{"run", "--once", "gpu", "--daily", now.Format("15:04"), "--zone", "Asia/Kathmandu"}, flags...)
	}
	middle := now.Truncate(time.Minute)
	first := apptest.Spawn(t, s.URL(), daily("--", "sh", "-c", `echo "$BERTH_PERIOD"`)...)
	require.Equal(t, apptest.Outcome(0, middle.Add(-12*time.Hour).UTC().Format(time.RFC3339)+"\n", ""), first)
	again := apptest.Spawn(t, s.URL(), daily("--strict", "--", "true")...).Ends(t, 77)
	require.Contains(t, again.Err, `"gpu" is done for the period from `)
	require.Equal(t, middle.Add(12*time.Hour).UnixMilli(), lastRun(t, s).Run.Period.End.UnixMilli())
}

func TestWhatDaysAreRefused(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	for _, row := range []struct {
		flags []string
		want  string
	}{
		{[]string{"--daily", "2 am"}, `invalid --daily: "2 am" is no time of day such as 02:00`},
		{[]string{"--daily", "02:00", "--zone", "Europe/Bonn"}, `invalid --zone: "Europe/Bonn" is no time zone that is known here`},
		{[]string{"--daily", "02:00", "--every", "24h"}, "invalid --daily: it stands in place of --every and --offset"},
		{[]string{"--daily", "02:00", "--weekly", "monday 02:00"}, "invalid --daily: of --daily, --weekly and --monthly give one"},
		{[]string{"--every", "24h", "--zone", "UTC"}, "invalid --zone: it is for --daily, --weekly and --monthly"},
		{[]string{"--weekly", "mo 02:00"}, `invalid --weekly: "mo" is no day of the week such as monday`},
		{[]string{"--weekly", "Mon"}, `invalid --weekly: "" is no time of day such as 02:00`},
		{[]string{"--monthly", "first 02:00"}, `invalid --monthly: "first" is no day of the month such as 1`},
		{[]string{"--monthly", "32 02:00"}, "invalid --monthly: 32 is not within 1 to 31"},
	} {
		got := apptest.Spawn(t, s.URL(), append(append([]string{"run", "--once", "gpu"}, row.flags...), "--", "true")...)
		require.NotZero(t, got.Code, row.flags)
		require.Contains(t, got.Err, row.want)
	}
}

// lastRun is what is known of the runs.
func lastRun(t *testing.T, s *embedded.Server) once.Last {
	t.Helper()
	last, err := once.New(apptest.NodeOf(t, s, node.Config{}), "gpu", once.Config{Every: time.Hour}).Last(t.Context())
	require.NoError(t, err)
	return last
}
