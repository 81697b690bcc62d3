//go:build unix

package app_test

import (
	"bytes"
	"cmp"
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/apptest"
)

func TestExitCodesOfTheOthers(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	for name, test := range map[string]struct {
		args []string
		url  string
		code int
		err  string
	}{
		"show an unknown one":          {args: []string{"sem", "show", "x"}, code: 1, err: `no semaphore "x" in namespace "berth"`},
		"ls":                           {args: []string{"sem", "ls"}},
		"check":                        {args: []string{"check"}},
		"ls, unreachable":              {args: []string{"sem", "ls"}, url: apptest.Nobody, code: 69, err: "cannot reach the server at 127.0.0.1:1: "},
		"show, unreachable":            {args: []string{"sem", "show", "x"}, url: apptest.Nobody, code: 69, err: "connection refused"},
		"check --json":                 {args: []string{"check", "--json"}, url: apptest.Nobody, code: 69, err: "cannot reach"},
		"pool ls":                      {args: []string{"pool", "ls"}},
		"show an unknown pool":         {args: []string{"pool", "show", "x"}, code: 1, err: `pool "x" in namespace "berth" has no resources, and nobody waits for one`},
		"next of an unknown pool":      {args: []string{"pool", "next", "x"}, code: 1, err: `pool "x" in namespace "berth" has no resources`},
		"add to a pool, unreachable":   {args: []string{"pool", "add", "x", "a"}, url: apptest.Nobody, code: 69, err: "connection refused"},
		"add a missing file to a pool": {args: []string{"pool", "add", "x", "--file", "/nowhere"}, url: apptest.Nobody, code: 66, err: "no such file"},
		"show a free lock":             {args: []string{"lock", "show", "x"}, code: 1, err: `lock "x" in namespace "berth" is free`},
		"release a free lock":          {args: []string{"lock", "release", "x", "--force"}, code: 1, err: `nobody holds lock "x"`},
		"extend a free lock":           {args: []string{"lock", "extend", "x", "--force", "--by", "1s"}, code: 1, err: `nobody holds lock "x"`},
		"the flag counts first":        {args: []string{"check", "--redis", s.URL()}, url: apptest.Nobody},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := apptest.Call(t, cmp.Or(test.url, s.URL()), test.args...).Ends(t, test.code)
			require.Contains(t, got.Err, test.err)
			if test.code != 0 {
				require.Equal(t, 1, strings.Count(got.Err, "\n"), "one line: %s", got.Err)
				require.Empty(t, got.Out)
			}
		})
	}
}

// What cannot be is refused before a server is asked. Each row has an error, and the lines that it answers, in which an
// argument is empty where two blanks stand, or one at the end.
func TestUsage(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	for _, row := range [][]string{
		{`unknown command "latch" for "berth"`, "latch"},
		{`unknown command "rm" for "berth sem"`, "sem rm"},
		{`unknown command "rm" for "berth pool". Did you mean this? remove`, "pool rm x a"},
		{`unknown command "unlock" for "berth". Did you mean this? lock, release`, "unlock nightly"},
		{`unknown command "resize" for "berth". Did you mean this? berth sem resize`, "resize gpu 4"},
		{`unknown command "shwo" for "berth pool". Did you mean this? show`, "pool shwo x"},
		{
			"unknown command \"lok\" for \"berth\". Did you mean this? lock\nSee 'berth --help'.\n", "lok ls",
			"lok --help",
		},
		{"unknown command \"lss\" for \"berth sem\". Did you mean this? ls\nSee 'berth sem --help'.\n", "sem lss"},
		{"unknown command \"relaese\" for \"berth lock\". Did you mean this? release\n", "lock relaese x --force"},
		{"unknown command \"drain\" for \"berth pool\". Did you mean this? berth drain\nSee 'berth pool --help'.\n", "pool drain --help"},
		{`unknown command "rm" for "berth lock"`, "lock -h rm"},
		{`unknown command "ksh" for "berth completion"`, "completion ksh --help"},
		{"unknown flag --nmespace. Did you mean this? --namespace\n", "sem ls --nmespace x"},
		{`"x" is one argument too many`, "version x", "sem ls x", "ps x", "check x", "drain x", "completion install x"},
		{"NAME is missing", "explain", "show", "sem show", "sem explain", "pool next", "pool add", "pool show"},
		{"invalid NAME", "sem show a{", "sem explain g{u", "lock release x{ --force", "sem sweep x x{", "pool show a{", "pool add a{ x"},
		{"invalid CAPACITY", "sem resize x 0", "sem resize x many", "sem resize x 99999999999999"},
		{
			"--for", "pool binding set p b a --for 1us", "sem pause gpu --for 0", "sem pause gpu --for 9000h",
			"sem pause gpu",
		},
		{"--max-sharers", "pool set p --max-sharers 101", "pool set p --max-sharers 0"},
		{"--max-lease", "pool set p --max-lease 1ms", "pool set p a --max-lease 1s"},
		{"--cooldown", "pool set p --cooldown 1us"},
		{"invalid --for: 9000h0m0s is not above 0 and at most 8784h0m0s\n", "pause --all --for 9000h --force", "pause gpu --for 9000h"},
		{"say --force if that is meant", "lock release x", "lock extend x --by 1s"},
		{"--by D is missing: by how much", "lock extend x --force"},
		{"invalid --by: 0s is not above 0", "lock extend x --force --by 0s"},
		{"invalid --by: it must end", "lock extend x --force --by " + berth.Forever.String()},
		{`invalid --by: "10000000" is not a time such as`, "lock extend x --force --by 10000000"},
		{"whole number of milliseconds", "lock extend x --force --by 1us", "pool add x a --expiry 1us"},
		{"invalid CLAIM: it is empty\nSee 'berth sem ", "sem release x  --force", "sem explain gpu "},
		{`"gpu" is one argument too many`, "cycles gpu", "ls gpu"},
		{"invalid --within: -1s is not above 0", "cycles --within -1s"},
		{"invalid --limit: -1 is below 0", "cycles --limit -1", "sem ls --limit -1"},
		{"invalid --limit: ", "sem ls --limit x", "sem ls --limit 1x"},
		{"invalid --sort: ", "sem ls --sort age", "ps --sort waiting"},
		{"invalid --redis: it is empty", "check --redis=", "run --sem gpu --redis  true"},
		{"--json is not for 'berth demo'", "demo --json"},
		{
			"invalid --all", "lock release x y --all --force", "pool release x --resource a --all --force",
			"lock release --all --owner ann --force", "sem release --all --node n --force", "pool show x a --all",
		},
		{`CLAIM is missing: what of "x" to release; with --all`, "sem release x --force"},
		{`CLAIM or RESOURCE is missing: what of "x"`, "pool release x --force"},
		{"invalid --owner: it is empty", "lock release --owner  --force", "run --lock a --owner  true"},
		{"invalid --node: it is empty", "pool release x --node  --force"},
		{"NAME is missing; or --owner", "pool release --force"},
		{`"z" is one argument too many`, "lock release x y z --force", "sem explain x y z"},
		{"NAME is missing: the pool", "pool release --resource a --force"},
		{"invalid --resource", "pool release x a --resource b --force", `run --pool a --resource "x --quoted true`},
		{"invalid --resource: a key is empty", "pool release x --resource  --force", "run --pool a --resource  true"},
		{
			"invalid RESOURCE", "pool release x a --owner ann --force", `pool release x "a --quoted --force`,
			"pool rest x  --for 0", "pool show x ", "pool binding set x b ",
		},
		{"NAME is missing; or --all\n", "pause --for 2h --force", "unpause", "sem unpause"},
		{"invalid --all: it is about all names; leave out \"gpu\"\n", "pause gpu --all --for 2h --force", "lock unpause --all gpu"},
		{"--for D is missing: how long it is to be paused, such as 10m or 2h\n", "pause --all --force", "pause gpu"},
		{
			"invalid --kind: \"x\" is none of sem, lock, pool\n", "pause gpu --for 1h --kind x", "sweep --kind x", "release a --kind x --force",
			"want a --kind x", "ps --kind x", "ls --kind x", "top --kind x", "explain gpu --kind x", "show gpu --kind x",
		},
		{"invalid --resource: a lock has no resources\n", "release a --kind lock --resource r --force"},
		{"it may be somebody else's: say --force if that is meant\n", "pause --all --for 2h"},
		{"NAME", "lock pause  --for 1h", "pool unpause", "pool set"},
		{"--node", "drain"},
		{"invalid --label", "drain --node a --label b", "drain --label "},
		{"--within", "drain --list --within 0s", "drain --label b --within 1m", "ps --within 0s"},
		{"--for", "drain --label b --for 0s", "drain --label b --for 1m --stop", "drain --list --for 1m", "drain --label b --for 9000h"},
		{"--force", "drain --label b --force-after 1m"},
		{"--force-after", "drain --label b --force", "drain --label b --force-after 1m --force --for 1m"},
		{`invalid --output: "xml" is none of wide, name, json`, "ls -o xml", "pool ls -o xml", "ps -o xml"},
		{"invalid --output: with --json it is JSON", "ls -o wide --json", "ps -o name --json"},
		{"invalid --watch: 1s is less than 2s", "ls --watch=1s", "sem ls --watch=1s"},
		{"invalid --watch: 500ms is less than 1s", "show gpu --watch=500ms", "pool show gpu --watch=500ms"},
		{"invalid --watch: 5s is less than 10s", "ps --watch=5s"},
		{"invalid --watch: it is not for -o name", "ls --watch -o name"},
		{"--meta", "ps --meta x", "ps --meta =x"},
		{"--limit", "ps --limit -1"},
		{"invalid --limit", "pool next x --limit -1"},
		{"RESOURCE is missing", "pool add x", "pool remove x", "pool rest x", "pool binding set x b"},
		{"invalid --expiry: 0s is not above 0; leave it out for good", "pool add x a --expiry 0s"},
		{"invalid --expiry: it must end", "pool add x a --expiry " + berth.Forever.String()},
		{`there is none to replace those of "x" with; to empty the pool, say --allow-empty`, "pool replace x --file /dev/null"},
		{"--for D is missing", "pool rest x a --reason r"},
		{"--reason TEXT is missing", "pool rest x a --for 1s"},
		{"invalid --for: -1s is below 0", "pool rest x a --for -1s"},
		{"invalid --for", "pool rest x a --for 1us --reason r"},
		{"invalid --reason", "pool rest x a --for 1s --reason " + strings.Repeat("r", 513)},
		{"there is nothing to set", "pool set p"},
		{"--policy", "pool set p --policy oldest", "pool set p a --policy random"},
		{"--max-hold", "pool set p a --max-hold 1s", "pool set p --max-hold 0"},
		{"--bind-for", "pool set p --bind-for 0"},
		{"invalid --bindings", "pool show x --bindings"},
		{`"b" is one argument too many`, "pool show x a b"},
		{"invalid NAME", "pool binding ls x{", "pool binding set x{ b a", "pool check x{ --exec true"},
		{"invalid BINDING", "pool binding set x  a", "pool binding remove x "},
		{"invalid --for: 0s is not above 0", "pool binding set x b a --for 0"},
		{"--exec CMD is missing", "pool check x"},
		{"invalid --workers", "pool check x --exec true --workers 0"},
		{"invalid --timeout", "pool check x --exec true --timeout 0"},
		{"invalid --rest", "pool check x --exec true --rest -1s", "pool check x --exec true --rest 1us"},
		{"--every is missing", "run --once a true"},
		{"invalid --every: 10ms is below 20ms", "run --once a --every 10ms true"},
		{"invalid --every: ", "run --once a --every 0s --offset 1h true"},
		{"invalid --offset: 1h0m0s is not below --every, 1h0m0s\n", "run --once a --every 1h --offset 1h true"},
		{"invalid --attempts: 0 is below 1\n", "run --once a --every 1h --attempts 0 true"},
		{"invalid --attempts: 1000001 is not within 1 to 1000000\n", "run --once a --every 1h --attempts 1000001 true"},
		{"invalid --retry-after: it is 0", "run --once a --every 1h --retry-after 0s true"},
		{"invalid --try: --once does not wait anyway, unless --wait is given\n", "run --once a --every 1h --try true"},
		{"invalid --owner: it is not for --once", "run --once a --every 1h --owner b true"},
		{"invalid --once: must have none of {}", "run --once a{ --every 1h true"},
		{"invalid --once: with --sem, --lock or --pool there are two", "run --once a --every 1h --lock b true"},
		{"invalid --every: it is for --once", "run --lock a --every 1h true"},
		{"invalid --retry-after: ", "run --once a --every 1h --retry-after -1s true"},
		{"invalid --retry-after: it is for --once", "run --lock a --retry-after 1m true"},
		{"invalid --strict: it is for --once", "run --pool a --strict true"},
		{
			"invalid --pool: with --sem or --lock there are two", "run --pool a --lock b true",
			"run --pool a --sem b true",
		},
		{
			"invalid --capacity: a pool has neither --capacity nor --weight", "run --pool a --capacity 2 true",
			"run --pool a --capacity 2 --weight 2 true",
		},
		{"invalid --weight: a pool has neither --capacity nor --weight", "run --pool a --weight 2 true"},
		{"invalid --access: a semaphore lets in who came first, and a pool too", "run --pool a --access lifo true"},
		{"invalid --pool: must have none of {}", "run --pool a{b} true"},
		{"invalid --pool", "run --pool  true"},
		{"invalid --bind: it is empty", "run --pool a --bind  true"},
		{"invalid --bind: 513 bytes", "run --pool a --bind " + strings.Repeat("x", 513) + " true"},
		{"invalid --bind-for: it is for --bind", "run --pool a --bind-for 1h true"},
		{"invalid --bind-for: 0s is not above 0", "run --pool a --bind x --bind-for 0s true"},
		{"invalid --bind-for", "run --pool a --bind x --bind-for 1us true"},
		{"invalid --bind-wait: it is for --bind", "run --pool a --bind-wait 1m true"},
		{"invalid --bind-wait: 0s is not above 0", "run --pool a --bind x --bind-wait 0s true"},
		{"invalid --bind-wait: -1s is not above 0", "run --pool a --bind x --bind-wait -1s true"},
		{"invalid --bind-wait: 1µs is not a whole number of milliseconds", "run --pool a --bind x --bind-wait 1us true"},
		{"invalid --bind-wait: with --resource no other one will do", "run --pool a --resource r --bind x --bind-wait 1m true"},
		{"invalid --quoted: it is for --resource", "run --pool a --quoted true"},
		{"invalid --bind-wait: it is for --pool", "run --lock a --bind-wait 1m true"},
		{"invalid --resource: it is for --pool", "run --lock a --resource r true"},
		{"invalid --cooldown: 0s is not above 0", "run --pool a --cooldown 0s true"},
		{"invalid --cooldown", "run --pool a --cooldown -1s true"},
		{"invalid --cooldown: 1µs is not a whole number of milliseconds", "run --pool a --cooldown 1us true"},
		{"invalid --cooldown: it must end", "run --pool a --cooldown 2562047h47m16.854775807s true"},
		{"invalid --bind: it is for --pool", "run --lock a --bind x true"},
		{"invalid --cooldown: it is for --pool", "run --sem a --capacity 1 --cooldown 1s true"},
		{"invalid --bind-for: it is for --pool", "run --lock a --bind-for 1s true"},
		{
			"invalid --lease: 19ms is below the shortest lease, 20ms", "run --pool a --lease 19ms true",
			"run --sem gpu --lease 19ms true",
		},
		{"no command to run is given", "run --sem gpu"},
		{"nothing to wait for is given: --sem NAME, or --lock NAME, or --pool NAME", "run true"},
		{"unknown flag --ttl", "run --sem gpu --ttl 3s true"},
		{`invalid --capacity: "two" is not a whole number`, "run --sem a --capacity two true"},
		{"invalid --capacity: 0 is below 1", "run --sem a --capacity 0 true"},
		{"invalid --capacity: 2000000000000 is not within 1 to", "run --sem a --capacity 2000000000000 true"},
		{"invalid --sem: must have none of {}", "run --sem a{b} --capacity 1 true"},
		{"invalid --weight: 3 is above the capacity, 2", "run --sem gpu --capacity 2 --weight 3 true"},
		{"invalid --weight: 0 is below 1", "run --sem gpu --capacity 2 --weight 0 true"},
		{"--on-wanted", "run --sem gpu --on-wanted NOSUCH true"},
		{"invalid --priority", "run --sem gpu --priority 128 true"},
		{"invalid --lease: 20.5ms is not a whole number", "run --sem gpu --lease 20.5ms true"},
		{"invalid --lease: it must end", "run --sem gpu --lease " + berth.Forever.String() + " true"},
		{"invalid --wait: 0s is not above 0; to not wait at all there is --try", "run --sem gpu --wait 0s true"},
		{"invalid --wait: with --try nothing waits", "run --sem gpu --wait 1s --try true"},
		{"invalid --grace: 1.001s is above a third of the lease, 1s", "run --sem gpu --lease 3s --grace 1001ms true"},
		{"invalid --grace: 0s is not above 0\n", "run --sem gpu --grace 0s true"},
		{"invalid --max-hold", "run --sem gpu --max-hold -1s true", "run --sem gpu --max-hold 0s true"},
		{"invalid --max-hold: 2s is below twice the grace, 2.002s; a shorter --grace allows it\n", "run --sem gpu --max-hold 2s --grace 1001ms true"},
		{"invalid --max-hold: 20ms is below twice the grace, 22ms", "run --lock a --max-hold 20ms --grace 11ms true"},
		{"invalid --max-hold: 19ms is below the shortest, 20ms\n", "run --sem gpu --max-hold 19ms true"},
		{"invalid --grace: 4s is above a third of the lease, 1.666s\n", "run --lock a --grace 4s true"},
		{"--sem needs a value: NAME", "run --sem"},
		{`invalid --wait: "5" is not a time such as 500ms, 30s, 1h30m or 1d12h`, "run --sem gpu --wait 5 true"},
		{`invalid --try: "maybe" is not true or false`, "run --sem gpu --try=maybe true"},
		{"a flag has no name", "run --=s3cret"},
		{"invalid --sem: it is given twice, with different values\n", "run --sem gpu --sem b true"},
		{"invalid --pool: it is given twice", "run --pool a --pool b --try true"},
		{"invalid --once: it is given twice", "run --once a --every 1h --once b true"},
		{"invalid --lease: it is given twice", "run --sem gpu --lease 1m --lease 2m true"},
		{"invalid --lock: must have none of {}", "run --lock a --lock b{ true", "run --lock a{b} true"},
		{"invalid --owner: 513 bytes", "run --lock a --owner " + strings.Repeat("o", 513) + " true"},
		{"invalid --conflict: without --owner", "run --lock a --conflict work true"},
		{`invalid --conflict: "enter" is none of fail, wait, work, extend`, "run --lock a --owner o --conflict enter true"},
		{"invalid --conflict: it is for --lock", "run --pool a --owner o --conflict work true"},
		{`invalid --meta: "job" is not KEY=VALUE`, "run --sem gpu --meta job true"},
		{`invalid --meta: "=7" is not KEY=VALUE`, "run --sem gpu --meta =7 true"},
		{`invalid --meta: the key "job" is given twice`, "run --sem gpu --meta job=7 --meta job=8 true"},
		{"invalid --meta: 16387 bytes are more than 16384", "run --sem gpu --meta job=" + strings.Repeat("7", 16<<10) + " true"},
		{"unknown flag --prioritiy. Did you mean this? --priority\n", "run --sem gpu --prioritiy 3 true"},
		{"invalid --lock: with --sem there are two", "run --sem gpu --lock a true"},
		{"invalid --capacity: a lock has neither --capacity nor --weight", "run --lock a --capacity 2 true"},
		{"invalid --lock", "run --lock  true"},
		{"invalid --access: a semaphore lets in who came first", "run --sem gpu --access lifo true"},
		{`invalid --access: "fifo" is none of queued, random, lifo`, "run --lock a --access fifo true"},
		{"invalid --lease", "run --lock a --lease 0s true"},
		{"invalid --namespace", "run --sem gpu --namespace a* true"},
		{"--json is not for 'berth run'", "run --sem gpu --json true"},
		{
			"--redis is neither a URL such as redis://host:6379/0 nor host:port", "run --sem gpu --redis http://127.0.0.1 true",
			"run --lock a --redis 127.0.0.1/6379 true",
		},
		{"--redis has a parameter that is none of addr, client_cache,", "run --sem gpu --redis redis://127.0.0.1?dial_timeuot=1s true"},
		{"invalid --redis-ca: it is for TLS", "run --sem gpu --redis 127.0.0.1 --redis-ca ca.pem true"},
		{"invalid --namespace: it is given twice", "--namespace a run --lock a --namespace=b true"},
		{"has no certificate in PEM", "run --lock a --redis rediss://127.0.0.1:1 --redis-ca main_test.go true"},
		{"invalid --redis-key: it needs --redis-cert", "run --lock a --redis rediss://127.0.0.1:1 --redis-key main_test.go true"},
		{"invalid --redis-cert: it needs --redis-key", "run --lock a --redis rediss://127.0.0.1:1 --redis-cert main_test.go true"},
		{"invalid --redis-cert: ", "run --lock a --redis rediss://127.0.0.1:1 --redis-cert main_test.go --redis-key main_test.go true"},
	} {
		for _, line := range row[1:] {
			args := strings.Split(line, " ")
			got := apptest.Call(t, apptest.Nobody, args...).Ends(t, 64, line)
			require.Contains(t, got.Err, row[0], line)
			require.Empty(t, got.Out)
			require.Equal(t, got, apptest.Call(t, s.URL(), args...))
		}
	}
}

func TestHelpNeedsNoServer(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"", "--help", "--version", "sem", "lock", "pool", "node", "once", "leader", "completion bash", "sem show x --help", "help drain",
	} {
		require.NotEmpty(t, apptest.Call(t, apptest.Nobody, strings.Fields(line)...).Ends(t, 0).Out, line)
	}
}

func TestThePasswordIsNeverPrinted(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	apptest.Got(apptest.SemOf(t, s, "gpu", 1).Acquire(context.Background(), nil))(t)
	addr := strings.TrimSuffix(strings.TrimPrefix(s.URL(), "redis://"), "?client_cache=0")
	urls := []string{
		apptest.Nobody,
		"redis://user:s3cret@" + addr, // the server knows no AUTH
		"redis://:s3c%ret@127.0.0.1:1",
		"redis://user:s3/s3cret@127.0.0.1:1",
		"redis://user:s3cret@127.0.0.1:1/one/two",
		"redis://user:s3cret@127.0.0.1:port",
		"http://user:s3cret@127.0.0.1",
		"user:s3cret@127.0.0.1",
		"user:s3cret",
		"redis://user:s3?s3cret@127.0.0.1:1",
	}
	for _, url := range urls {
		t.Run(url, func(t *testing.T) {
			t.Parallel()
			for _, line := range []string{
				"check", "sem ls", "sem show gpu", "sem resize gpu 2", "lock ls", "pool ls", "pool add proxies a", "node flush",
				"check --help", "run --sem gpu --capacity 1 --try true", "__complete sem show ",
			} {
				args := strings.Split(line, " ")
				var out, errs bytes.Buffer
				apptest.Program(append([]string{"--redis", url}, args...), nil, &out, &errs)
				if args[0] != "__complete" { // it repeats what is being typed
					apptest.Program(append([]string{"-redis=" + url}, args...), nil, &out, &errs)
				}
				require.NotContains(t, out.String()+errs.String(), "s3c")
			}
			for _, args := range [][]string{{"check"}, {"--help"}} {
				got := apptest.Spawn(t, url, args...)
				require.NotContains(t, got.Out+got.Err, "s3c")
			}
		})
	}
}
