package view_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
)

func TestACommandSaysWhatMends(t *testing.T) {
	t.Parallel()
	const wild = "it's\x1b[2J\u202e\xff $(rm) \\ \n"
	of := func(kind keyspace.Kind, verb, name string) inspect.Mend {
		return inspect.Mend{Kind: kind, Verb: verb, Name: name}
	}
	resource := func(verb, name, key string) inspect.Mend {
		return inspect.Mend{Kind: keyspace.Pool, Verb: verb, Name: name, Resource: key}
	}
	for _, test := range []struct {
		mend inspect.Mend
		args []string // nil: it cannot be said
	}{
		{inspect.Mend{Verb: "unpause"}, []string{"unpause", "--all"}},
		{inspect.Mend{Verb: "flush"}, []string{"node", "flush"}},
		{of(keyspace.Lock, "unpause", "-a b'"), []string{"lock", "unpause", "--", "-a b'"}},
		{of(keyspace.Sem, "sweep", "gpu"), []string{"sem", "sweep", "gpu"}},
		{inspect.Mend{Kind: keyspace.Sem, Verb: "resize", Name: "gpu", Capacity: 4}, []string{"sem", "resize", "gpu", "4"}},
		{inspect.Mend{Kind: keyspace.Sem, Verb: "release", Name: "gpu", Claim: "a.b"}, []string{"sem", "release", "gpu", "a.b", "--force"}},
		{inspect.Mend{Kind: keyspace.Sem, Verb: "release", Name: "gpu", Claim: "-a.b"}, []string{"sem", "release", "--force", "--", "gpu", "-a.b"}},
		{inspect.Mend{Kind: keyspace.Lock, Verb: "release", Name: "a", Owner: wild}, []string{"lock", "release", "a", "--owner", wild, "--force"}},
		{inspect.Mend{Kind: keyspace.Lock, Verb: "release", Name: "a", Owner: "a\x00b"}, nil},
		{resource("rest", "proxies", wild), []string{"pool", "rest", "proxies", wild, "--for", "0"}},
		{resource("add", "proxies", `"a"`), []string{"pool", "add", "proxies", `"a"`}},
		{resource("add", "proxies", "-a\x00"), []string{"pool", "add", "proxies", `"-a\x00"`, "--quoted"}},
	} {
		for _, namespace := range []string{"", "team b"} {
			command := view.Command(test.mend, view.In(namespace)...)
			if test.args == nil {
				require.Empty(t, command)
				continue
			}
			said, err := exec.Command("bash", "-c", `berth() { printf '%s\0' "$@"; }; `+command).Output()
			require.NoError(t, err, command)
			want := strings.Join(test.args, "\x00") + "\x00"
			if namespace != "" {
				words := strings.Join(test.args[:min(len(test.args), 2)], "\x00") + "\x00"
				if test.mend.Name == "" && test.mend.Verb == "unpause" {
					words = "unpause\x00"
				}
				want = strings.Replace(want, words, words+"--namespace\x00team b\x00", 1)
			}
			require.Equal(t, want, string(said), command)
		}
	}
}
