package run

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

func TestExitCodesOfRun(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	held := apptest.SemOf(t, s, "held", 1)
	apptest.Got(held.Acquire(context.Background(), nil))(t)
	_, err := apptest.LocksOf(t, s, node.Config{}).Lock(berth.WithOwner(context.Background(), "tester"), "held", nil)
	require.NoError(t, err)
	file := func(text string, mode os.FileMode) string {
		path := filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
		return path
	}
	run := func(args ...string) []string {
		return append([]string{"run", "--sem", "gpu", "--capacity", "2"}, args...)
	}
	busy := func(args ...string) []string {
		return append([]string{"run", "--sem", "held", "--capacity", "2"}, args...)
	}
	for name, test := range map[string]struct {
		args []string
		url  string
		code int
		err  string // part of stderr; "" for none at all
	}{
		"the command's own":      {args: run("--", "sh", "-c", "exit 7"), code: 7},
		"success":                {args: run("true"), code: 0},
		"flags of the command":   {args: run("sh", "-c", "exit 9"), code: 9},
		"a signal's":             {args: run("--", "sh", "-c", "kill -9 $$"), code: 137},
		"unreachable":            {args: run("--", "true"), url: apptest.Nobody, code: 69, err: "cannot reach the server at 127.0.0.1:1: "},
		"not in time":            {args: busy("--wait", "12s", "--", "true"), code: 75, err: "s (capacity 1, held 1, waiting 0)"},
		"not at once":            {args: busy("--try", "--", "true"), code: 75, err: "full (capacity 1, held 1"},
		"heavier than stored":    {args: busy("--weight", "2", "--", "true"), code: 75, err: "too heavy"},
		"no such command":        {args: run("--", "no-such-command-anywhere"), code: 127, err: "not found"},
		"no such file":           {args: run("--", "/no/such/file"), url: apptest.Nobody, code: 127, err: "no such file or directory"},
		"no such file, relative": {args: run("--", "./no-such-file"), url: apptest.Nobody, code: 127, err: "no such file or directory"},
		"not executable":         {args: run("--", file("#!/bin/true\n", 0o600)), url: apptest.Nobody, code: 126, err: "permission denied"},
		"a directory":            {args: run("--", t.TempDir()), url: apptest.Nobody, code: 126, err: "is a directory"},
		"no such interpreter":    {args: run("--", file("#!/no/such/shell\n", 0o700)), code: 127, err: "no such file or directory"},
		"not a program":          {args: run("--", file("\x00\x01\x02", 0o700)), code: 126, err: "exec format error"},
		"max-hold of a lock":     {args: []string{"run", "--lock", "a", "--max-hold", "1h", "true"}},
		"max-hold alone":         {args: run("--max-hold", "1h", "--", "true")},
		"a lock twice":           {args: []string{"run", "--lock", "twice", "--lock", "twice", "true"}},
		"a semaphore twice":      {args: []string{"run", "--sem", "twice", "--capacity", "1", "--sem", "twice", "true"}},
		"one lock is held":       {args: []string{"run", "--lock", "held", "--lock", "free", "--try", "--", "true"}, code: 75, err: `"held" not acquired: held`},
		"conflict":               {args: []string{"run", "--lock", "held", "--owner", "tester", "--", "true"}, code: 75, err: "would wait for its own owner"},
		"a CA that is not there": {args: run("--redis", "rediss://127.0.0.1:1", "--redis-ca", "/no/ca.pem", "--", "true"), code: 66, err: "open /no/ca.pem: no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := apptest.Spawn(t, cmp.Or(test.url, s.URL()), test.args...).Ends(t, test.code)
			require.Contains(t, got.Err, test.err)
			if test.err == "" {
				require.Empty(t, got.Err)
			}
			require.Empty(t, got.Out)
		})
	}
}

func TestARunWithoutACapacityUsesTheStoredOne(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	run := []string{"run", "--sem", "gpu", "--try", "--", "true"}
	require.Equal(t, apptest.Outcome(64, "", "berth: --capacity N is missing: no capacity of \"gpu\" is stored in namespace \"berth\"\nSee 'berth run --help'.\n"),
		apptest.Spawn(t, s.URL(), run...))
	apptest.Got(apptest.SemOf(t, s, "gpu", 2).Acquire(context.Background(), nil))(t)
	require.Equal(t, apptest.Result{}, apptest.Spawn(t, s.URL(), run...))
	other := apptest.Spawn(t, s.URL(), "run", "--sem", "gpu", "--capacity", "3", "--", "true")
	require.Equal(t, apptest.Outcome(0, "", "berth: warning: the capacity of \"gpu\" is 2, and not 3; the stored one counts\n"), other)
	require.Equal(t, apptest.Outcome(64, "", "berth: invalid --weight: 3 is above the stored capacity, 2\nSee 'berth run --help'.\n"),
		apptest.Spawn(t, s.URL(), "run", "--sem", "gpu", "--weight", "3", "--", "true"))
	full := apptest.Spawn(t, s.URL(), "run", "--sem", "gpu", "--weight", "2", "--try", "--", "true").Ends(t, 75)
	require.Contains(t, full.Err, "full (capacity 2, held 1")
}

func TestARunUsesItsNamespace(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	other := semaphore.New(apptest.NodeOf(t, s, node.Config{Namespace: "other"}), "gpu", 1, semaphore.Config{})
	apptest.Got(other.Acquire(context.Background(), nil))(t)
	require.Equal(t, 0, apptest.Spawn(t, s.URL(), "run", "--sem", "gpu", "--capacity", "1", "--try", "true").Code)
	require.Equal(t, 75, apptest.Spawn(t, s.URL(), "--namespace", "other", "run", "--sem", "gpu", "--capacity", "1", "--try", "true").Code)
}
