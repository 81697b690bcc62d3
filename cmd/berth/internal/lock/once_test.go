package lock

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/once"
)

// The keys of the lock digest, and of its runs.
const (
	lockKey = "berth:lock:{digest}:state"
	runsKey = "berth:once:{digest}:state"
)

// yearly is the job of these tests: periods so long, and one so begun, that none ends in a test.
func yearly() once.Config {
	const year = 8784 * time.Hour
	now := time.Duration(time.Now().Unix()) * time.Second
	return once.Config{Every: year, Offset: (now + year/2) % year, Lease: time.Minute}
}

// jobs are the runs of digest, on a server of their own.
type jobs struct {
	*once.Job
	t     *testing.T
	s     *embedded.Server
	redis rueidis.Client
}

func jobsOf(t *testing.T, label string) *jobs {
	t.Helper()
	s := apptest.Server(t)
	redis := apptest.Got(s.Client(apptest.Patiently))(t)
	t.Cleanup(redis.Close)
	return &jobs{once.New(apptest.NodeOf(t, s, node.Config{Label: label}), "digest", yearly()), t, s, redis}
}

// begin begins a run, which ends with the test.
func (j *jobs) begin() *once.Run {
	j.t.Helper()
	run, _, err := j.Begin(j.t.Context())
	require.NoError(j.t, err)
	require.NotNil(j.t, run)
	j.t.Cleanup(func() { _ = run.End(context.Background(), nil) })
	return run
}

// ran is a run that has ended.
func (j *jobs) ran(failure error) {
	j.t.Helper()
	_ = j.begin().End(j.t.Context(), failure)
}

func (j *jobs) do(command ...string) {
	j.t.Helper()
	require.NoError(j.t, j.redis.Do(j.t.Context(), j.redis.B().Arbitrary(command[0]).Keys(command[1]).Args(command[2:]...).Build()).Error())
}

// show is lock show, its lines about runs, and its document of them.
func (j *jobs) show() (got apptest.Result, lines []string, document app.ShowDocument) {
	j.t.Helper()
	document = apptest.Read[app.ShowDocument](j.t, apptest.Call(j.t, j.s.URL(), "lock", "show", "digest", "--json").Out)
	got = apptest.Call(j.t, j.s.URL(), "lock", "show", "digest")
	_, shown, _ := strings.Cut(got.Out, "\nOnce in each period\n")
	return got, strings.Split(shown, "\n"), document
}

const (
	when = `20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`
	of   = ` for the period from ` + when + ` to ` + when + `, by host/one/1, begun at ` + when + `, `
)

func TestLockShowSaysWhatBecameOfARun(t *testing.T) {
	t.Parallel()
	j := jobsOf(t, "host/one/1")
	j.ran(errors.New("exit code 7"))
	got, lines, document := j.show()
	require.Equal(t, apptest.Outcome(0, got.Out, ""), got, "the lock is free, and runs are known")
	require.Zero(t, apptest.Call(t, j.s.URL(), "lock", "show", "digest", "--json").Code)
	require.True(t, strings.HasPrefix(got.Out, "digest: free, waiting 0\n\n"), got.Out)
	require.Regexp(t, `^Newest run: attempt 1`+of+`failed after \S+s: "exit code 7"$`, lines[0])
	require.Equal(t, "Newest success: none is known", lines[1])
	require.Nil(t, document.Once.Success)
	require.Equal(t, once.Failed, document.Once.Run.Outcome)
	require.Equal(t, "exit code 7", document.Once.Run.Error)
	require.NotZero(t, document.Once.Run.Ended)

	j.ran(nil)
	_, lines, document = j.show()
	require.Regexp(t, `^Newest run: attempt 2`+of+`done after \S+s$`, lines[0])
	require.Equal(t, "Newest success: this run", lines[1])
	require.Equal(t, document.Once.Run, document.Once.Success)
	last := apptest.Got(j.Last(t.Context()))(t)
	require.Equal(t, last, *document.Once)
	require.Equal(t, 2, document.Once.Run.Attempt)
}

func TestLockShowTellsWhatASignalStopped(t *testing.T) {
	t.Parallel()
	j := jobsOf(t, "host/one/1")
	stopped, stop := context.WithCancel(t.Context())
	run := j.begin()
	stop()
	require.NoError(t, run.End(stopped, context.Canceled))
	_, lines, document := j.show()
	require.Regexp(t, `^Newest run: attempt 1`+of+`stopped by its own process after \S+s: "context canceled"$`, lines[0])
	require.Equal(t, once.Stopped, document.Once.Run.Outcome)
}

func TestLockShowTellsWhetherARunGoesOn(t *testing.T) {
	t.Parallel()
	j := jobsOf(t, "host/one/1")
	j.begin()
	got, lines, document := j.show()
	require.Zero(t, got.Code, got.Err)
	require.Regexp(t, `^digest: held for `, got.Out)
	require.Regexp(t, `^Newest run: attempt 1`+of+`goes on$`, lines[0])
	require.True(t, document.GoesOn)
	require.Zero(t, document.Once.Run.Ended)

	j.do("DEL", lockKey) // as when the lease of a process that died is over
	got, lines, document = j.show()
	require.Zero(t, got.Code)
	require.Regexp(t, `has not ended, and its lock is gone: its process has died, or has lost the lock$`, lines[0])
	require.False(t, document.GoesOn)

	apptest.Got(apptest.LocksOf(t, j.s, node.Config{}).Lock(t.Context(), "digest", nil))(t)
	got, lines, document = j.show()
	require.Zero(t, got.Code, "somebody else has the lock")
	require.Regexp(t, `its process has died`, lines[0])
	require.False(t, document.GoesOn)
}

func TestLockShowTellsOfMissedPeriods(t *testing.T) {
	t.Parallel()
	j := jobsOf(t, "host/one/1")
	j.ran(nil)
	success, err := j.redis.Do(t.Context(), j.redis.B().Hget().Key(runsKey).Field("success").Build()).ToString()
	require.NoError(t, err)
	words := strings.SplitN(success, " ", 9)
	words[2], words[7], words[8] = words[2]+"0", "3", strings.Replace(words[8], "done", "failed", 1)
	j.do("HSET", runsKey, "run", strings.Join(words, " "))
	_, lines, document := j.show()
	require.Regexp(t, `, failed after \S+s; before it 3 periods went by without a success$`, lines[0])
	require.Regexp(t, `^Newest success: attempt 1`+of+`done after \S+s$`, lines[1], "another run")
	require.Equal(t, 3, document.Once.Run.Missed)
	require.Zero(t, document.Once.Success.Missed)
}

func TestLockShowShowsTheLockWhereTheRunsCannotBeRead(t *testing.T) {
	t.Parallel()
	for what, stored := range map[string][]string{
		"a string":     {"SET", runsKey, "somebody else's"},
		"incompatible": {"HSET", runsKey, "fmt", "2"},
		"be read":      {"HSET", runsKey, "fmt", "1", "run", "\x1b[2J\u202e\u3164"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			j := jobsOf(t, "")
			apptest.Got(apptest.LocksOf(t, j.s, node.Config{}).Lock(t.Context(), "digest", nil))(t)
			j.do(stored...)
			got, _, document := j.show()
			require.Zero(t, got.Code, got.Err)
			require.Regexp(t, `^berth: warning: what is kept of the runs of digest cannot be read: .*`+what+`.*\n$`, got.Err)
			require.Regexp(t, `^digest: held for `, got.Out)
			require.NotContains(t, got.Out, "Once in")
			require.Nil(t, document.Once)
			requireReadable(t, got)
		})
	}
}

// requireReadable requires that nothing in the output harms a terminal.
func requireReadable(t *testing.T, got apptest.Result) {
	t.Helper()
	all := strings.ReplaceAll(got.Out+got.Err, "\n", "")
	require.Equal(t, -1, strings.IndexFunc(all, func(r rune) bool { return !unicode.IsPrint(r) || text.Hidden(r) }), "%q", all)
}
