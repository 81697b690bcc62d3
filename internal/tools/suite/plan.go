//go:build unix

package main

import (
	"os"
	"slices"
	"time"
)

// A plan is what one of the commands does.
type plan struct {
	does       string
	cold, warm time.Duration // on two quiet cores, with an empty and with a full build cache
	steps      []step
}

// A step is one thing that a plan does: a command, or the tests of a module. Steps run
// side by side but for their after: one that mostly waits costs the others nothing.
type step struct {
	name    string
	does    string
	takes   time.Duration // alone, with an empty build cache
	command []string
	module  string   // the folder of the module whose tests are run
	flags   []string // of go test
	cpu     string   // -cpu of go test
	first   string   // packages that take long, so that none of them is left at the end
	env     []string // NAME=value, or NAME alone to take it away

	after  []string // steps that must have ended, passed or not
	vital  bool     // what comes after it is not run if it fails
	yields bool     // no clock decides it: it gives way to those that go by the real one
	always bool     // runs when all others have ended, or were ended
}

// built is how all is built, also what tests build by themselves: what is built in the same
// way is built once. The race detector is kept out of the interpreter that runs the scripts
// on the embedded server: each of its states belongs to one goroutine, and watching it is a
// third of what the library's tests cost. The commands of rueidis are a sixth of all that
// is compiled; without inlining they are a tenth.
const built = "-gcflags=github.com/yuin/gopher-lua/...=-race=0 -gcflags=github.com/redis/rueidis/internal/cmds=-l"

// testFlags are those of all tests. vet is a step of its own. A test that waits for ever
// is to be named; a slow machine is not to be taken for one.
var testFlags = []string{"-race", "-vet=off", "-timeout=30m"}

// lazily is how garbage is collected: it costs the compiler and the linter a fifth of their
// time, and the tests a seventh, to keep their memory half as large.
const lazily = "GOGC=400"

// places are the folders that the plans need: one whose redis-server, valkey-server and
// docker fail, and one for the Docker that a plan starts. goflags is the variable of all
// go commands.
type places struct{ bare, docker, goflags string }

// plans are the three commands.
func plans(at places) map[string]plan {
	target := func(name, does string, takes time.Duration, after ...string) step {
		return step{name: name, does: does, takes: takes, command: []string{"make", "--no-print-directory", name}, after: after}
	}
	setup := func(what ...string) step {
		return step{
			name: "setup", does: "installs what is missing", takes: time.Second,
			command: append([]string{"tools/setup.sh"}, what...), vital: true,
		}
	}
	tests := func(module, does string, takes time.Duration, after ...string) step {
		return step{name: "test " + module, does: does, takes: takes, module: module, after: after}
	}

	// What two go commands need at the same time is built by both, and everything twice if
	// one of them wants no race detector: so all is built first, once, with it.
	build := step{
		name: "build", does: "the library, the command and their tests, with the race detector", takes: 85 * time.Second, after: []string{"setup"},
		command: []string{"go", "list", "-race", "-test", "-export", "-f={{/* nothing */}}", "./...", "./cmd/berth/..."},
	}
	racing := []string{at.goflags + " -race"}
	root := tests(".", "the library, with nothing but Go", 2*time.Minute, "build")
	// Most of them take place in virtual time, so that processor time is all they cost. With
	// one processor to a process they cost a sixth less; the race detector would have each
	// process sleep for a second at its end.
	root.cpu, root.first = "1", "./pkg/..."
	root.env = []string{
		"PATH=" + at.bare + string(os.PathListSeparator) + os.Getenv("PATH"), "BERTH_TEST_REDIS", "BERTH_REDIS",
		"GORACE=atexit_sleep_ms=50",
	}
	command := root
	command.name, command.module, command.first = "test cmd/berth", "cmd/berth", ""
	// Its tests start many processes, whose leases go by the real clock: beside all the others
	// a server of theirs would not get a processor for longer than a lease.
	command.flags, command.after = []string{"-p=1"}, []string{root.name}
	command.does, command.takes = "the command, with nothing but Go", 90*time.Second
	// What others make of the library, each a module with few tests.
	var contrib []step
	for _, module := range []string{"cron", "gocron", "http", "otel", "prometheus"} {
		one := root
		one.name, one.module, one.first = "test contrib/"+module, "contrib/"+module, ""
		one.does, one.takes, one.after = "the module, with nothing but Go", 20*time.Second, []string{command.name}
		contrib = append(contrib, one)
	}
	rootAlone := root // little else fills a processor while one of them waits or is linked
	rootAlone.flags = []string{"-p=4"}
	// Most of them wait most of the time: more at once than there are processors.
	servers := tests("test", "conformance, integration, rolling deploys, torture: on real servers", 5*time.Minute, "build")
	servers.flags = []string{"-p=4"}
	servers.env = []string{"BERTH_TEST_TMUX=required", "BERTH_TEST_SHELLS=required", "BERTH_TEST_PROMETHEUS=required"}
	bench := tests("test/bench", "every row of the benchmark once, as small as can be", time.Minute, "build")
	bench.flags = []string{"-p=1"} // one package has nearly all
	browser := tests("test/browser", "the console in a real browser, and what an open page costs", 4*time.Minute, "build", bench.name, "lint", servers.name)
	browser.flags, browser.yields = []string{"-p=1"}, true // a browser fills the processors by itself; its leases are long

	tidy := target("check-tidy", "go.mod and go.sum", time.Second, "setup")
	docs := target("check-docs", "what is generated, links, anchors, names", 10*time.Second, "check-tidy", "build")
	docs.env = racing
	lint := target("lint", "golangci-lint, go vet among it, in all modules; luacheck", 75*time.Second, "check-docs")
	lint.env, lint.yields = racing, true
	// What the modules of tests stand on, and nothing else needs, takes as long to build as
	// all the rest.
	lintSome := lint
	lintSome.does, lintSome.takes = "golangci-lint, go vet among it, in the library and the command; luacheck", 30*time.Second
	lintSome.command = append(slices.Clone(lint.command), "MODULES=. cmd/berth")
	// It builds all that the library stands on for each system: more than a commit is worth.
	vet := target("vet", "the library and the command for macOS and Windows", 3*time.Minute, "lint")
	vet.yields = true

	dockerd := target("setup-docker", "a Docker, if none answers", 10*time.Second, "setup")
	dockerd.env = []string{"BERTH_DOCKER=" + at.docker}
	contained := servers
	contained.env = append(slices.Clone(servers.env), "BERTH_TEST_DOCKER=required")
	contained.after = []string{"build", dockerd.name}
	undocker := step{
		name: "stop-docker", does: "ends the Docker that it started", takes: time.Second,
		command: []string{"tools/docker.sh", "stop"}, env: dockerd.env, always: true,
	}
	consumer := target("check-consumer", "an application can add Berth, and nothing else is upgraded", 30*time.Second, "vet")
	consumer.yields = true

	return map[string]plan{
		"check": {
			does: "tidy, docs, lint with vet, and the tests of the library and the command with the race detector",
			cold: 4 * time.Minute, warm: 2 * time.Minute,
			steps: []step{setup("cc", "golangci-lint", "luacheck"), tidy, build, docs, lintSome, rootAlone, command},
		},
		"test": {
			does: "all tests with the race detector, on real servers too",
			cold: 9 * time.Minute, warm: 7 * time.Minute,
			steps: append([]step{setup("cc", "redis", "valkey", "tmux", "shells", "prometheus"), build, root, command, servers, bench}, contrib...),
		},
		"ci": {
			does: "everything that a change must pass",
			cold: 14 * time.Minute, warm: 8 * time.Minute,
			steps: append([]step{
				setup("cc", "redis", "valkey", "tmux", "shells", "prometheus", "golangci-lint", "luacheck", "chromium"),
				tidy, build, docs, lint, vet, consumer, root, command, dockerd, contained, bench, browser, undocker,
			}, contrib...),
		},
	}
}
