package allocator_test

import (
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/scripts"
)

// file is a Go file of the package.
func file(t *testing.T, name string) string {
	t.Helper()
	return string(must(os.ReadFile(name))(t))
}

// distinct sorts and drops repeats.
func distinct(words []string) []string {
	slices.Sort(words)
	return slices.Compact(words)
}

// source is a script as it is written, comments included.
func source(t *testing.T, path string) string {
	t.Helper()
	raw := must(fs.ReadFile(scripts.FS, path))(t)
	return string(raw)
}

// found are the first groups of all matches, sorted and without repeats.
func found(pattern, text string) []string {
	var words []string
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		words = append(words, match[1])
	}
	return distinct(words)
}

func TestTheWordsOfAResourceAreItsStates(t *testing.T) {
	t.Parallel()
	states := []string{
		string(allocator.Absent), string(allocator.Damaged), string(allocator.Free), string(allocator.Leased), string(allocator.Resting),
	}
	require.Equal(t, []string{reader.Absent, reader.Damaged, reader.Free, reader.Leased, reader.Resting}, states)
	require.Equal(t, states, found(`State = "(\w+)"`, file(t, "resources.go")))
}

// fieldsOf are the keys of a table in Lua that is written in one expression.
func fieldsOf(t *testing.T, table, raw string) []string {
	t.Helper()
	body := regexp.MustCompile(`(?s)local ` + table + ` = \{(.*?)\}`).FindStringSubmatch(raw)
	require.NotNil(t, body)
	return found(`(\w+) = `, body[1])
}

// problemWords are the words that pool_inspect has for what does not fit together.
func problemWords(t *testing.T) []string {
	t.Helper()
	raw := source(t, "pool_inspect.lua") + source(t, "pool/audit.lua")
	words := found(`problem\("(\w+)"`, raw)
	for _, choice := range regexp.MustCompile(`problem\([^"\n]+ and "(\w+)" or "(\w+)"`).FindAllStringSubmatch(raw, -1) {
		words = append(words, choice[1:]...)
	}
	return distinct(words)
}

func TestTheProblemsOfAnInspectionAreThoseThatGoExplains(t *testing.T) {
	t.Parallel()
	raw := source(t, "pool_inspect.lua")
	explains := regexp.MustCompile(`(?s)\nvar problems = .*?\n\}`).FindString(file(t, "inspect.go"))
	explained := found(`"(\w+)": `, explains)
	require.Len(t, regexp.MustCompile(`": .*%q.*",\n`).FindAllString(explains, -1), len(explained))
	require.Len(t, explained, strings.Count(explains, "%q"), "each names what it is about once")
	sums := regexp.MustCompile(`type sums struct \{\n(.*) int64\n\}`).FindStringSubmatch(file(t, "inspect.go"))
	require.NotNil(t, sums)
	counted := strings.Split(strings.TrimSpace(sums[1]), ", ")
	require.Equal(t, problemWords(t), explained)
	require.Equal(t, fieldsOf(t, "seen", raw), distinct(slices.Clone(counted)))

	// The order of the counts is that of the reply.
	reply := regexp.MustCompile(`(?s)local reply = \{(.*?)\n\}`).FindStringSubmatch(raw)
	require.NotNil(t, reply)
	var order []string
	for _, field := range regexp.MustCompile(`seen\.(\w+)`).FindAllStringSubmatch(reply[1], -1) {
		order = append(order, field[1])
	}
	require.Equal(t, order, counted)
}

func TestThePoliciesOfTheScriptsAreThoseOfTheConfig(t *testing.T) {
	t.Parallel()
	var letters []string
	for _, p := range []allocator.Policy{allocator.LeastRecent, allocator.MostRecent, allocator.Random} {
		letters = append(letters, p.String()[:1])
	}
	line := regexp.MustCompile(`--   policy +(.*)`).FindStringSubmatch(source(t, "pool/settings.lua"))
	require.NotNil(t, line)
	require.Equal(t, letters, found(`(\w): `, line[1]))
	require.Subset(t, letters, found(`w\.policy == "(\w)"`, source(t, "pool/pick.lua")))
	require.Equal(t, "least recent", allocator.LeastRecent.String())
	require.Equal(t, "most recent", allocator.MostRecent.String())
	require.Equal(t, "random", allocator.Random.String())
	require.Equal(t, "unknown", allocator.Policy(9).String())
	require.Equal(t, "unknown", allocator.Policy(-1).String())
}
