package main

import (
	"testing"
	"testing/fstest"
)

func TestAStepThatIsNoTargetOfMake(t *testing.T) {
	t.Parallel()
	const makefile = "REDIS :=\nFOR ?= 1s\n\n.PHONY: gone\nci: # all\n\t@true\nbench-all:\n"
	for _, test := range []struct{ name, step, problem string }{
		{"a target", "      - run: make ci", ""},
		{"a target with a dash", "        run: make bench-all", ""},
		{"variables", "      - run: make ci REDIS=7.2 FOR=${{ matrix.for }}", ""},
		{"a variable with quotes", `      - run: make ci REDIS="$GITHUB_REF_NAME"`, ""},
		{"an action", "      - uses: actions/checkout@v6", ""},
		{"no target", "      - run: make gone", "w.yml:2: the Makefile has no target gone"},
		{"no variable", "      - run: make ci REDIS=7.2 VALKEY=8", "w.yml:2: the Makefile has no variable VALKEY"},
		{"two targets", "      - run: make ci bench-all", "w.yml:2: a step runs something else than make and one target: make ci bench-all"},
		{"two commands", "      - run: make ci && rm -rf out", "a step runs something else"},
		{"a script", "      - run: |\n          make ci", "a step runs something else"},
		{"something else", "      - run: go test ./...", "a step runs something else"},
	} {
		requireProblem(t, test.problem, checkWorkflows(fstest.MapFS{
			"Makefile": {Data: []byte(makefile)}, ".github/workflows/w.yml": {Data: []byte("jobs:\n" + test.step + "\n")},
		}), test.name)
	}
}
