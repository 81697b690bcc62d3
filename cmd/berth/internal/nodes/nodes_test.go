package nodes_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/internal/testkit/link"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/leader"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/once"
	"github.com/berth-go/berth/pkg/qlock"
)

// TestADeadNodeIsShownAndFlushed lets a node go silent that holds a lock for an hour
// and does not renew it. Another one has a far longer limit, and lives.
func TestADeadNodeIsShownAndFlushed(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	const limit = 10 * time.Second
	way := link.New(nil)
	redis := apptest.Got(s.Client(way.Wrap))(t)
	t.Cleanup(redis.Close)
	dead, err := node.New(redis, node.Config{
		Label: "dead/one/1", Lease: time.Minute, Swarm: node.SwarmConfig{ProbeEvery: limit / 6, ZombieAfter: limit, FlushEvery: -1},
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		way.Mend() // it has nothing any more, and is not to try for long to find that out
		_ = dead.Close(context.Background())
	})
	id := dead.ID()
	_, err = qlock.New(dead, qlock.Config{}).Lock(context.Background(), "table", &qlock.LockOptions{Lease: time.Hour, NoRenew: true})
	require.NoError(t, err)
	require.NoError(t, dead.Swarm().Start(context.Background()))
	require.Equal(t, id, dead.ID())

	got := apptest.Call(t, s.URL(), "node", "ls").Ends(t, 0)
	require.Regexp(t, `^NODE +STATE +HEARD +LIMIT +HOLDS +WAITS FOR +LABEL\n`+id+` +alive +[\d.]+[mµ]?s +10s +lock table +- +dead/one/1\n$`, got.Out)

	way.Cut()
	live := apptest.LocksOf(t, s, node.Config{
		Label: "live/one/2", Swarm: node.SwarmConfig{ProbeEvery: time.Minute, ZombieAfter: time.Hour, FlushEvery: -1},
	})
	require.NoError(t, live.Swarm().Start(context.Background()))
	require.Eventually(t, func() bool { return strings.Contains(apptest.Call(t, s.URL(), "node", "ls").Out, "zombie") },
		apptest.Patience, 200*time.Millisecond)

	require.Regexp(t, `\n`+id+` +zombie .* lock table `, apptest.Call(t, s.URL(), "node", "ls").Out, "the dead come first")
	got = apptest.Call(t, s.URL(), "node", "show", id).Ends(t, 0)
	require.Regexp(t, `^NODE +STATE .*\n`+id+` +zombie .*\n\nKIND +NAME .*\nlock +table +holds +.* fixed .*\n$`, got.Out)
	require.Contains(t, apptest.Call(t, s.URL(), "node", "show", id, "--json").Out, `"process": "fixed"`)

	require.Equal(t, apptest.Outcome(0, "nodes condemned: 1, holds ended: 1, waiting claims removed: 0\n", ""), apptest.Call(t, s.URL(), "node", "flush"))
	require.Contains(t, apptest.Call(t, s.URL(), "node", "ls").Out, "condemned")
	lock, err := live.TryLock(context.Background(), "table", nil)
	require.NoError(t, err, "it is free")
	require.NoError(t, lock.Release(context.Background()))
}

func TestANodeOfWhichNothingIsKnown(t *testing.T) {
	t.Parallel()
	got := apptest.Call(t, apptest.Server(t).URL(), "node", "show", "a\x1b[2J")
	require.Equal(t, apptest.Outcome(1, "", "berth: node \"a\\x1b[2J\" is not known in namespace \"berth\": it holds nothing, waits for nothing, and is in no swarm\n"), got)
	require.Equal(t, 64, apptest.Call(t, apptest.Server(t).URL(), "node", "ls", "--within", "0").Code)
}

// TestRunsAreListedWithTheirOutcomeAndWhenTheyAreDue has periods of a year whose middle it is: none ends in a test.
func TestRunsAreListedWithTheirOutcomeAndWhenTheyAreDue(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	const year = 8784 * time.Hour
	cfg := once.Around(year, time.Duration(time.Now().Unix())*time.Second)
	n := apptest.NodeOf(t, s, node.Config{Label: "host/one/1"})
	begin := func(name string) *once.Run {
		run, _, err := once.New(n, name, cfg).Begin(t.Context())
		require.NoError(t, err)
		t.Cleanup(func() { _ = run.End(context.Background(), nil) })
		return run
	}
	require.NoError(t, begin("digest").End(t.Context(), nil))
	require.NoError(t, begin("fails").End(t.Context(), errors.New("exit code 7")))
	begin("goes on")
	begin("dies")
	redis := apptest.Got(s.Client(apptest.Patiently))(t)
	t.Cleanup(redis.Close)
	require.NoError(t, redis.Do(t.Context(), redis.B().Del().Key("berth:lock:{dies}:state").Build()).Error(), "as when its lease is over")

	got := apptest.Call(t, s.URL(), "once", "ls").Ends(t, 0)
	const row = ` +[\d.]+[mµ]?s +`
	require.Regexp(t, `^NAME +STATE +BEGAN +TOOK +SUCCESS +EVERY +DUE +LABEL\n`+
		`fails +failed`+row+`[\d.]+[mµ]?s +- +366d00h +18[23]d\d\dh +host/one/1\n`+
		`dies +died`+row+`- +- +366d00h +54[89]d\d\dh +host/one/1\n`+
		`digest +done`+row+`[\d.]+[mµ]?s`+row+`366d00h +54[89]d\d\dh +host/one/1\n`+
		`goes on +goes on`+row+`- +- +366d00h +54[89]d\d\dh +host/one/1\n$`, got.Out)

	got = apptest.Call(t, s.URL(), "once", "show", "fails").Ends(t, 0)
	require.Regexp(t, `^fails: failed, due by 20\d\d-\S+Z, in 18[23]d\d\dh\nNewest run: attempt 1 .*"exit code 7"\nNewest success: none is known\n$`, got.Out)
	document := apptest.Read[app.RunsDocument](t, apptest.Call(t, s.URL(), "once", "show", "goes on", "--json").Out)
	require.True(t, document.Runs.GoesOn)
	require.Equal(t, once.Begun, document.Once.Run.Outcome)
	require.Equal(t, apptest.Outcome(1, "", "berth: \"none\" in namespace \"berth\": no runs of it are known\n"), apptest.Call(t, s.URL(), "once", "show", "none"))
}

func TestElectionsAreToldFromPlainLocks(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	stand := func(label string) {
		e := leader.New(apptest.NodeOf(t, s, node.Config{Label: label}), "scheduler", leader.Config{})
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- e.Run(ctx, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }) }()
		t.Cleanup(func() {
			cancel()
			require.ErrorIs(t, <-ended, context.Canceled)
		})
	}
	locks := apptest.LocksOf(t, s, node.Config{Label: "plain"})
	apptest.Got(locks.Lock(t.Context(), "plain", nil))(t)
	stand("host/one/1")
	led := func() bool { return apptest.NameOf(t, s, keyspace.Lock, "scheduler").Held == 1 }
	require.Eventually(t, led, apptest.Patience, 10*time.Millisecond)
	stand("host/two/1")
	apptest.WaitingFor(t, s, keyspace.Lock, "scheduler")

	got := apptest.Call(t, s.URL(), "leader", "ls").Ends(t, 0)
	require.Regexp(t, `^NAME +STATE +LEADER +FOR +LEFT +FENCE +CANDIDATES +NODE\nscheduler +led +host/one/1 .* 1 +[0-9a-f]{16}\n$`, got.Out)
	got = apptest.Call(t, s.URL(), "leader", "show", "scheduler").Ends(t, 0)
	require.Regexp(t, `^scheduler: host/one/1 has led for \S+, \S+ left\n\nHeld by\n(.*\n){2}\nWaiting in line\n.*\n.*host/two/1.*\n$`, got.Out)
	require.Equal(t, apptest.Outcome(1, "", "berth: \"plain\" in namespace \"berth\": nobody leads or stands for it\n"), apptest.Call(t, s.URL(), "leader", "show", "plain"))
}
