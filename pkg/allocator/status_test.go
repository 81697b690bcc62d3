package allocator_test

import (
	"io/fs"
	"os"
	"regexp"
	"slices"
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
