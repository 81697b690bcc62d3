//go:build unix

package main

import (
	"os"
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
	env     []string // NAME=value, or NAME alone to take it away

	after  []string // steps that must have ended, passed or not
	vital  bool     // what comes after it is not run if it fails
	always bool     // runs when all others have ended, or were ended
}

// testFlags are those of all tests. vet is a step of its own. A test that waits for ever
// is to be named; a slow machine is not to be taken for one.
var testFlags = []string{"-race", "-vet=off", "-timeout=30m"}

// plans are the three commands. The folder bare has a redis-server, a valkey-server and a
// docker that fail; docker is the folder of the Docker that a plan starts.
func plans(bare, docker string) map[string]plan {
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

	// What two go commands need at the same time is built by both: the library is built
	// for one before the tests of all modules begin.
	build := step{
		name: "build", does: "the library and what it stands on, with the race detector", takes: 60 * time.Second,
		command: []string{"go", "build", "-race", "./..."}, after: []string{"setup"},
	}
	root := tests(".", "the library, with nothing but Go", 3*time.Minute, "build")
	root.env = []string{"PATH=" + bare + string(os.PathListSeparator) + os.Getenv("PATH"), "BERTH_TEST_REDIS", "BERTH_REDIS"}
	// Most of them wait most of the time: more at once than there are processors.
	real := tests("test", "conformance, integration, rolling deploys, torture: on real servers", 5*time.Minute, "build")
	real.flags = []string{"-p=8"}
	bench := tests("test/bench", "every row of the benchmark once, as small as can be", time.Minute, "build")

	tidy := target("check-tidy", "go.mod and go.sum", time.Second, "setup")
	docs := target("check-docs", "what is generated, links, anchors, names", 10*time.Second, "check-tidy")
	lint := target("lint", "golangci-lint in all modules, luacheck", time.Minute, "check-docs")
	vet := target("vet", "the library for macOS and Windows", time.Minute, "lint")

	dockerd := target("setup-docker", "a Docker, if none answers", 10*time.Second, "setup")
	dockerd.env = []string{"BERTH_DOCKER=" + docker}
	contained := real
	contained.env = []string{"BERTH_TEST_DOCKER=required"}
	contained.after = []string{"build", dockerd.name}
	undocker := step{
		name: "stop-docker", does: "ends the Docker that it started", takes: time.Second,
		command: []string{"tools/docker.sh", "stop"}, env: dockerd.env, always: true,
	}
	consumer := target("check-consumer", "an application can add Berth, and nothing else is upgraded", time.Minute, "vet")

	return map[string]plan{
		"check": {
			does: "tidy, docs, lint, vet, and the unit tests of the library with the race detector",
			cold: 4 * time.Minute, warm: 3 * time.Minute,
			steps: []step{setup("cc", "golangci-lint", "luacheck"), tidy, docs, lint, vet, build, root},
		},
		"test": {
			does: "all tests with the race detector, on real servers too",
			cold: 10 * time.Minute, warm: 8 * time.Minute,
			steps: []step{setup("cc", "redis", "valkey"), build, root, real, bench},
		},
		"ci": {
			does: "everything that a change must pass",
			cold: 15 * time.Minute, warm: 10 * time.Minute,
			steps: []step{
				setup("cc", "redis", "valkey", "golangci-lint", "luacheck"),
				tidy, docs, lint, vet, consumer, build, root, dockerd, contained, bench, undocker,
			},
		},
	}
}
