package run

import (
	"context"
	"os"
	"path/filepath"
	"strings"
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
	_, err := held.Acquire(context.Background(), nil)
	require.NoError(t, err)
	_, err = apptest.LocksOf(t, s, node.Config{}).Lock(berth.WithOwner(context.Background(), "tester"), "held", nil)
	require.NoError(t, err)
	notExecutable := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(notExecutable, []byte("#!/bin/true\n"), 0o600))
	notAProgram := filepath.Join(t.TempDir(), "noise")
	require.NoError(t, os.WriteFile(notAProgram, []byte("\x00\x01\x02"), 0o700))

	noInterpreter := filepath.Join(t.TempDir(), "script")
	require.NoError(t, os.WriteFile(noInterpreter, []byte("#!/no/such/shell\n"), 0o700))

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
		"not in time":            {args: busy("--wait", "12s", "--", "true"), code: 75, err: "timed out after "},
		"not at once":            {args: busy("--try", "--", "true"), code: 75, err: "full (capacity 1, held 1"},
		"heavier than stored":    {args: busy("--weight", "2", "--", "true"), code: 75, err: "too heavy"},
		"no such command":        {args: run("--", "no-such-command-anywhere"), code: 127, err: "not found"},
		"no such file":           {args: run("--", "/no/such/file"), url: apptest.Nobody, code: 127, err: "no such file or directory"},
		"no such file, relative": {args: run("--", "./no-such-file"), url: apptest.Nobody, code: 127, err: "no such file or directory"},
		"not executable":         {args: run("--", notExecutable), url: apptest.Nobody, code: 126, err: "permission denied"},
		"a directory":            {args: run("--", t.TempDir()), url: apptest.Nobody, code: 126, err: "is a directory"},
		"no such interpreter":    {args: run("--", noInterpreter), code: 127, err: "no such file or directory"},
		"not a program":          {args: run("--", notAProgram), code: 126, err: "exec format error"},
		"no command":             {args: run(), code: 64, err: "no command to run is given"},
		"no flags":               {args: []string{"run", "true"}, code: 64, err: "nothing to wait for is given: --sem NAME, or --lock NAME, or --pool NAME"},
		"unknown flag":           {args: run("--ttl", "3s", "--", "true"), code: 64, err: "unknown flag --ttl"},
		"not a number":           {args: []string{"run", "--sem", "a", "--capacity", "two", "true"}, code: 64, err: `invalid --capacity: "two" is not a whole number`},
		"capacity 0":             {args: []string{"run", "--sem", "a", "--capacity", "0", "true"}, code: 64, err: "invalid --capacity: 0 is below 1"},
		"capacity too large":     {args: []string{"run", "--sem", "a", "--capacity", "2000000000000", "true"}, code: 64, err: "invalid --capacity: 2000000000000 is not within 1 to"},
		"name with braces":       {args: []string{"run", "--sem", "a{b}", "--capacity", "1", "true"}, code: 64, err: "invalid --sem: must have none of {}"},
		"weight above capacity":  {args: run("--weight", "3", "--", "true"), code: 64, err: "invalid --weight: 3 is above the capacity, 2"},
		"weight 0":               {args: run("--weight", "0", "--", "true"), code: 64, err: "invalid --weight: 0 is below 1"},
		"no signal":              {args: run("--on-wanted", "NOSUCH", "--", "true"), code: 64, err: "--on-wanted"},
		"priority":               {args: run("--priority", "128", "--", "true"), code: 64, err: "invalid --priority"},
		"lease too short":        {args: run("--lease", "19ms", "--", "true"), code: 64, err: "invalid --lease: 19ms is below the shortest lease, 20ms"},
		"lease in microseconds":  {args: run("--lease", "20.5ms", "--", "true"), code: 64, err: "invalid --lease: 20.5ms is not a whole number"},
		"lease without end":      {args: run("--lease", berth.Forever.String(), "--", "true"), code: 64, err: "invalid --lease: it must end"},
		"wait 0":                 {args: run("--wait", "0s", "--", "true"), code: 64, err: "invalid --wait: 0s is not above 0; to not wait at all there is --try"},
		"wait and try":           {args: run("--wait", "1s", "--try", "--", "true"), code: 64, err: "invalid --wait: with --try nothing waits"},
		"grace above a third":    {args: run("--lease", "3s", "--grace", "1001ms", "--", "true"), code: 64, err: "invalid --grace: 1.001s is above a third of the lease, 1s"},
		"grace 0":                {args: run("--grace", "0s", "--", "true"), code: 64, err: "invalid --grace: 0s is not above 0\n"},
		"max-hold below 0":       {args: run("--max-hold", "-1s", "--", "true"), code: 64, err: "invalid --max-hold"},
		"max-hold 0":             {args: run("--max-hold", "0s", "--", "true"), code: 64, err: "invalid --max-hold"},
		"max-hold below grace":   {args: run("--max-hold", "2s", "--grace", "1001ms", "--", "true"), code: 64, err: "invalid --max-hold: 2s is below twice the grace, 2.002s; a shorter --grace allows it\n"},
		"max-hold of a lock":     {args: []string{"run", "--lock", "a", "--max-hold", "1h", "true"}},
		"max-hold alone":         {args: run("--max-hold", "1h", "--", "true")},
		"the shortest max-hold":  {args: []string{"run", "--lock", "a", "--max-hold", "20ms", "--grace", "11ms", "true"}, code: 64, err: "invalid --max-hold: 20ms is below twice the grace, 22ms"},
		"max-hold too short":     {args: run("--max-hold", "19ms", "--", "true"), code: 64, err: "invalid --max-hold: 19ms is below the shortest, 20ms\n"},
		"grace of a lock":        {args: []string{"run", "--lock", "a", "--grace", "4s", "true"}, code: 64, err: "invalid --grace: 4s is above a third of the lease, 1.666s\n"},
		"wait too long":          {args: run("--wait", "10000000h", "--", "true"), code: 64, err: `invalid --wait: "10000000h" is too long; the longest`},
		"a flag without a value": {args: []string{"run", "--sem"}, code: 64, err: "--sem needs a value: NAME"},
		"a time without a unit":  {args: run("--wait", "5", "--", "true"), code: 64, err: `invalid --wait: "5" is not a time such as 500ms, 30s, 1h30m or 1d12h`},
		"neither true nor false": {args: run("--try=maybe", "--", "true"), code: 64, err: `invalid --try: "maybe" is not true or false`},
		"a flag of no name":      {args: []string{"run", "--=s3cret"}, code: 64, err: "a flag has no name"},
		"a lock twice":           {args: []string{"run", "--lock", "twice", "--lock", "twice", "true"}},
		"a semaphore twice":      {args: []string{"run", "--sem", "twice", "--capacity", "1", "--sem", "twice", "true"}},
		"two semaphores":         {args: run("--sem", "b", "true"), code: 64, err: "invalid --sem: it is given twice, with different values\n"},
		"two pools":              {args: []string{"run", "--pool", "a", "--pool", "b", "--try", "true"}, code: 64, err: "invalid --pool: it is given twice"},
		"two periodic names":     {args: []string{"run", "--once", "a", "--every", "1h", "--once", "b", "true"}, code: 64, err: "invalid --once: it is given twice"},
		"two leases":             {args: run("--lease", "1m", "--lease", "2m", "true"), code: 64, err: "invalid --lease: it is given twice"},
		"two namespaces":         {args: append([]string{"--namespace", "a"}, run("--namespace=b", "true")...), code: 64, err: "invalid --namespace: it is given twice"},
		"one lock is held":       {args: []string{"run", "--lock", "held", "--lock", "free", "--try", "--", "true"}, code: 75, err: `"held" not acquired: held`},
		"a bad second lock":      {args: []string{"run", "--lock", "a", "--lock", "b{", "true"}, code: 64, err: "invalid --lock: must have none of {}"},
		"owner of no name":       {args: []string{"run", "--lock", "a", "--owner", "", "true"}, code: 64, err: "invalid --owner: it is empty"},
		"owner too long":         {args: []string{"run", "--lock", "a", "--owner", strings.Repeat("o", 513), "true"}, code: 64, err: "invalid --owner: 513 bytes"},
		"conflict of no owner":   {args: []string{"run", "--lock", "a", "--conflict", "work", "true"}, code: 64, err: "invalid --conflict: without --owner"},
		"conflict of no kind":    {args: []string{"run", "--lock", "a", "--owner", "o", "--conflict", "enter", "true"}, code: 64, err: `invalid --conflict: "enter" is none of fail, wait, work, extend`},
		"conflict of a pool":     {args: []string{"run", "--pool", "a", "--owner", "o", "--conflict", "work", "true"}, code: 64, err: "invalid --conflict: it is for --lock"},
		"conflict":               {args: []string{"run", "--lock", "held", "--owner", "tester", "--", "true"}, code: 75, err: "would wait for its own owner"},
		"meta of no value":       {args: run("--meta", "job", "true"), code: 64, err: `invalid --meta: "job" is not KEY=VALUE`},
		"meta of no key":         {args: run("--meta", "=7", "true"), code: 64, err: `invalid --meta: "=7" is not KEY=VALUE`},
		"meta twice":             {args: run("--meta", "job=7", "--meta", "job=8", "true"), code: 64, err: `invalid --meta: the key "job" is given twice`},
		"meta too large":         {args: run("--meta", "job="+strings.Repeat("7", 16<<10), "true"), code: 64, err: "invalid --meta: 16387 bytes are more than 16384"},
		"mistyped flag":          {args: run("--prioritiy", "3", "true"), code: 64, err: "unknown flag --prioritiy. Did you mean this? --priority\n"},
		"a semaphore and a lock": {args: run("--lock", "a", "true"), code: 64, err: "invalid --lock: with --sem there are two"},
		"a lock with a capacity": {args: []string{"run", "--lock", "a", "--capacity", "2", "true"}, code: 64, err: "a lock has neither --capacity nor --weight"},
		"a lock with braces":     {args: []string{"run", "--lock", "a{b}", "true"}, code: 64, err: "invalid --lock: must have none of {}"},
		"a lock of no name":      {args: []string{"run", "--lock", "", "true"}, code: 64, err: "invalid --lock"},
		"access of a semaphore":  {args: run("--access", "lifo", "true"), code: 64, err: "invalid --access: a semaphore lets in who came first"},
		"access of no kind":      {args: []string{"run", "--lock", "a", "--access", "fifo", "true"}, code: 64, err: `invalid --access: "fifo" is none of queued, random, lifo`},
		"a lease of nothing":     {args: []string{"run", "--lock", "a", "--lease", "0s", "true"}, code: 64, err: "invalid --lease"},
		"a server of no name":    {args: run("--redis", "", "--", "true"), code: 64, err: "invalid --redis: it is empty"},
		"namespace with a glob":  {args: run("--namespace", "a*", "--", "true"), code: 64, err: "invalid --namespace"},
		"json":                   {args: run("--json", "--", "true"), code: 64, err: "--json is not for 'berth run'"},
		"usage before server":    {args: run("--lease", "1ms", "--", "true"), url: apptest.Nobody, code: 64, err: "--lease"},
		"a URL that is none":     {args: run("--redis", "http://127.0.0.1", "--", "true"), code: 64, err: "--redis is neither a URL such as redis://host:6379/0 nor host:port"},
		"a URL of no port":       {args: run("--", "true"), url: "127.0.0.1/6379", code: 64, err: "--redis is neither a URL"},
		"an unknown parameter":   {args: run("--redis", "redis://127.0.0.1?dial_timeuot=1s", "--", "true"), code: 64, err: "--redis has a parameter that is none of addr, client_cache,"},
		"a CA without TLS":       {args: run("--redis", "127.0.0.1", "--redis-ca", "ca.pem", "--", "true"), code: 64, err: "invalid --redis-ca: it is for TLS"},
		"a CA that is not there": {args: run("--redis", "rediss://127.0.0.1:1", "--redis-ca", "/no/ca.pem", "--", "true"), code: 66, err: "open /no/ca.pem: no such file"},
		"a CA that is none":      {args: run("--redis", "rediss://127.0.0.1:1", "--redis-ca", notAProgram, "--", "true"), code: 64, err: "has no certificate in PEM"},
		"a key alone":            {args: run("--redis", "rediss://127.0.0.1:1", "--redis-key", notAProgram, "--", "true"), code: 64, err: "invalid --redis-key: it needs --redis-cert"},
		"a certificate alone":    {args: run("--redis", "rediss://127.0.0.1:1", "--redis-cert", notAProgram, "--", "true"), code: 64, err: "invalid --redis-cert: it needs --redis-key"},
		"no certificate":         {args: run("--redis", "rediss://127.0.0.1:1", "--redis-cert", notAProgram, "--redis-key", notAProgram, "--", "true"), code: 64, err: "invalid --redis-cert: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := test.url
			if url == "" {
				url = s.URL()
			}
			play := apptest.Spawn
			if test.code == 64 { // nothing is started
				play = apptest.Call
			}
			got := play(t, url, test.args...)
			require.Equal(t, test.code, got.Code, got.Err)
			require.Contains(t, got.Err, test.err)
			if test.err == "" {
				require.Empty(t, got.Err)
			}
			require.Empty(t, got.Out)
		})
	}
}

func TestARunSaysThatAnotherCapacityIsStored(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	require.NoError(t, semaphore.NewOperator(apptest.NodeOf(t, s, node.Config{})).Resize(context.Background(), "gpu", 3, &semaphore.ResizeOptions{Create: true}))
	got := apptest.Spawn(t, s.URL(), "run", "--sem", "gpu", "--capacity", "2", "--", "true")
	require.Equal(t, 0, got.Code)
	require.Equal(t, "berth: warning: the capacity of \"gpu\" is 3, and not 2; the stored one counts\n", got.Err)
}

func TestARunWithoutACapacityUsesTheStoredOne(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	run := []string{"run", "--sem", "gpu", "--try", "--", "true"}
	require.Equal(t, apptest.Outcome(64, "", "berth: --capacity N is missing: no capacity of \"gpu\" is stored in namespace \"berth\"\nSee 'berth run --help'.\n"),
		apptest.Spawn(t, s.URL(), run...))
	_, err := apptest.SemOf(t, s, "gpu", 2).Acquire(context.Background(), nil)
	require.NoError(t, err)
	require.Equal(t, apptest.Result{}, apptest.Spawn(t, s.URL(), run...))
	require.Equal(t, apptest.Outcome(64, "", "berth: invalid --weight: 3 is above the stored capacity, 2\nSee 'berth run --help'.\n"),
		apptest.Spawn(t, s.URL(), "run", "--sem", "gpu", "--weight", "3", "--", "true"))
	full := apptest.Spawn(t, s.URL(), "run", "--sem", "gpu", "--weight", "2", "--try", "--", "true")
	require.Equal(t, 75, full.Code)
	require.Contains(t, full.Err, "full (capacity 2, held 1")
}

func TestARunUsesItsNamespace(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	other := semaphore.New(apptest.NodeOf(t, s, node.Config{Namespace: "other"}), "gpu", 1, nil)
	_, err := other.Acquire(context.Background(), nil)
	require.NoError(t, err)
	require.Equal(t, 0, apptest.Spawn(t, s.URL(), "run", "--sem", "gpu", "--capacity", "1", "--try", "true").Code)
	require.Equal(t, 75, apptest.Spawn(t, s.URL(), "--namespace", "other", "run", "--sem", "gpu", "--capacity", "1", "--try", "true").Code)
}
