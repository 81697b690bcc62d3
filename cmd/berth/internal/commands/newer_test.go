package commands_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/cmd/berth/internal/apptest"
	"github.com/berth-go/berth/pkg/node"
)

// ofNewer are commands about names of which a newer release has written some, by the rows of the table in docs/operations.md. KIND
// stands for each kind, and NAME for one of these names: a fat and a thin one.
var ofNewer = []struct {
	row      string
	commands []string
}{
	{"`berth run`, `show`, `explain`, changes of one name or many", []string{
		"KIND show NAME", "show NAME", "show NAME --kind KIND", "KIND explain NAME", "KIND explain NAME a.b", "explain NAME",
		"KIND pause NAME --for 1m", "pause NAME --for 1m", "KIND unpause NAME", "KIND sweep NAME", "KIND want NAME",
		"KIND want NAME 0123456789abcdef.x", "KIND release NAME 0123456789abcdef.x --force", "KIND release NAME --all --force",
		"run --sem NAME --capacity 1 --try -- true", "run --sem NAME --capacity 2 --try -- true", "sem resize NAME 3",
		"run --lock NAME --try -- true", "lock extend NAME --by 1m --force", "lock release NAME --force", "leader show NAME",
		"run --once fat --every 1h -- true", "once show fat", "run --pool fat --try -- true", "pool add fat r", "pool remove fat r",
		"pool replace fat r", "pool rest fat r --for 1m --reason x", "pool set fat --cooldown 5s", "pool show fat r", "pool next fat",
		"pool inspect fat", "pool binding ls fat", "pool binding set fat b r", "pool binding remove fat b",
		"sweep", "KIND sweep", "release --owner x --force", "KIND release --owner x --force", "want --owner x", "drain --label nobody",
	}},
	{"`berth ls`, `ps`, `node ls`", []string{"ls", "KIND ls", "ps", "ps --kind KIND", "node ls"}},
	{"`berth pause --all`", []string{"pause --all --for 1m --force"}},
	{"`berth top`", []string{"top"}},
}

// variants are the commands that one stands for.
func variants(command string) (all []string) {
	for _, kind := range []string{"sem", "lock", "pool"} {
		for _, name := range []string{"fat", "thin"} {
			told := strings.NewReplacer("KIND", kind, "NAME", name).Replace(command)
			if n := len(all); kind+name != "poolthin" && (n == 0 || all[n-1] != told) { // pools have no thin form
				all = append(all, told)
			}
		}
	}
	return all
}

func TestWhatCommandsSayOfANameThatANewerReleaseHasWritten(t *testing.T) {
	t.Parallel()
	s := apptest.Server(t)
	redis, err := s.Client(apptest.Patiently)
	require.NoError(t, err)
	t.Cleanup(redis.Close)
	do := func(words ...string) string {
		got, err := redis.Do(t.Context(), redis.B().Arbitrary(words...).Build()).ToAny()
		require.NoError(t, err)
		return fmt.Sprint(got)
	}
	apptest.Got(apptest.SemOf(t, s, "fine", 2).Acquire(t.Context(), nil))(t)
	apptest.Got(apptest.LocksOf(t, s, node.Config{}).Lock(t.Context(), "fine", nil))(t)
	apptest.Got(apptest.Filled(t, s, "fine", "a").Allocate(t.Context(), nil))(t)
	keys := map[string]string{"berth:once:{fat}:state": "fmt"}
	for _, kind := range []string{"sem", "lock", "pool"} {
		keys["berth:"+kind+":{fat}:state"] = "v"
		if kind != "pool" {
			do("SET", "berth:"+kind+":{thin}:state", "f1000 and more")
		}
	}
	for key, field := range keys {
		do("HSET", key, field, "1000 and more")
	}
	var rows []string
	for _, of := range ofNewer {
		came := map[string]string{}
		for _, command := range of.commands {
			for _, command := range variants(command) {
				came[tells(apptest.Call(t, s.URL(), strings.Fields(command)...))] = command
			}
		}
		require.Len(t, came, 1, "all of the row are alike")
		for tells := range came {
			rows = append(rows, "| "+of.row+" | "+tells+" |")
		}
	}
	for key, field := range keys {
		require.Equal(t, "["+field+" 1000 and more]", do("HGETALL", key), "nothing was written")
	}
	require.Equal(t, "f1000 and more", do("GET", "berth:lock:{thin}:state"))

	text := apptest.Got(os.ReadFile("../../../../docs/operations.md"))(t)
	_, table, found := strings.Cut(string(text), "| a process of the older release |")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	var stands []string
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "| `berth ") {
			stands = append(stands, strings.TrimSpace(line))
		}
	}
	require.Equal(t, rows, stands, "docs/operations.md is to have:\n%s", strings.Join(rows, "\n"))
}

// tells is what a command has come to, as the table has it.
func tells(r apptest.Result) string {
	var all []string
	if said := r.Out + r.Err; strings.Contains(said, "format 1000") || strings.Contains(said, "the form 1000") {
		all = append(all, "the number")
	}
	if strings.Contains(r.Out, "stuck: newer form") {
		all = append(all, "`stuck: newer form`")
	}
	if strings.Contains(r.Out, "fine") {
		all = append(all, "the other names")
	}
	return fmt.Sprintf("exit code %d | %s", r.Code, strings.Join(all, ", "))
}
