package conformance

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/test/harness"
)

// A topology is a kind of deployment.
type topology struct {
	name    string
	start   func(*testing.T) *harness.Deployment
	missing func() error // why it cannot be had on this machine; nil if it always can
}

func topologies() []topology {
	return []topology{
		{name: "redis", start: func(t *testing.T) *harness.Deployment { return harness.Single(t) }},
		{name: "valkey", start: func(t *testing.T) *harness.Deployment { return harness.Valkey(t) }},
		{name: "cluster", start: func(t *testing.T) *harness.Deployment { return harness.Cluster(t) }},
		{name: "sentinel", start: func(t *testing.T) *harness.Deployment { return harness.Sentinel(t) }},
		{
			name:    "container",
			start:   func(t *testing.T) *harness.Deployment { return harness.Container(t) },
			missing: harness.ContainerMissing,
		},
		{name: "embedded", start: func(t *testing.T) *harness.Deployment { return harness.Embedded(t) }},
	}
}

// A test runs on every topology, in a namespace of its own.
type test struct {
	name  string
	alone bool // does something to the whole deployment, so that no other runs beside it
	run   func(*world)
}

func tests() []test {
	return slices.Concat(serverTests(), kindTests(), semaphoreTests(), lockTests(), allocatorTests(), fenceTests(), onceTests())
}

// A limit is a test that a topology cannot pass.
type limit struct {
	topology, test string
	why            string
	refused        []string // a command that the server answers with an error as long as that is so
}

// limits is all that any topology cannot do.
var limits = []limit{
	{"embedded", cutTest, "it does not know CLIENT KILL", []string{"CLIENT", "KILL", "TYPE", "normal"}},
	{
		"embedded", versionTest,
		"it has no INFO server, and so no version to tell; Check warns of that",
		[]string{"INFO", "server"},
	},
}

func TestConformance(t *testing.T) {
	t.Parallel()
	for _, top := range topologies() {
		t.Run(top.name, func(t *testing.T) {
			t.Parallel()
			if top.missing != nil {
				if err := top.missing(); err != nil {
					omit(t, "all of "+top.name, err.Error())
				}
			}
			top.run(t, top.start(t))
		})
	}
}

// run runs all tests on a deployment: first those that run alone, on connections of
// their own, for they break them; then all others, beside each other.
func (top topology) run(t *testing.T, d *harness.Deployment) {
	t.Helper()
	require.Equal(t, top.name, d.Name)
	clients := func(t *testing.T) [2]rueidis.Client { return [2]rueidis.Client{d.Client(t), d.Client(t)} }
	for _, test := range tests() {
		if test.alone {
			t.Run(test.name, func(t *testing.T) { top.try(newWorld(t, d, clients(t)), test) })
		}
	}
	shared := clients(t)
	for _, test := range tests() {
		if !test.alone {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				top.try(newWorld(t, d, shared), test)
			})
		}
	}
}

// try runs a test, or proves that the topology cannot pass it.
func (top topology) try(w *world, test test) {
	w.Helper()
	for _, l := range limits {
		if l.topology == top.name && l.test == test.name {
			require.Error(w, w.redis[0].Do(w.Within(patience), w.redis[0].B().Arbitrary(l.refused...).Build()).Error())
			omit(w.T, top.name+"/"+test.name, l.why)
		}
	}
	test.run(w)
}

func TestMain(m *testing.M) {
	code := harness.Main(m)
	if err := report(); err != nil {
		fmt.Fprintf(os.Stderr, "the list of what was not run: %v\n", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// omitted is what was not run, for the list at the end.
var omitted struct {
	sync.Mutex
	lines []string // guarded by the mutex
}

// omit puts something on the list at the end, and skips it.
func omit(t *testing.T, what, why string) {
	t.Helper()
	omitted.Lock()
	omitted.lines = append(omitted.lines, fmt.Sprintf("  %s: %s", what, strings.ReplaceAll(why, "\n", "; ")))
	omitted.Unlock()
	t.Skip(why)
}

// report prints the list.
func report() error {
	omitted.Lock()
	defer omitted.Unlock()
	if len(omitted.lines) == 0 {
		return nil
	}
	text := "conformance, not run:\n" + strings.Join(omitted.lines, "\n") + "\n"
	fmt.Print(text)
	path := os.Getenv("BERTH_TEST_REPORT")
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
