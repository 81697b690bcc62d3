package scripts_test

import (
	"bufio"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/scripts"
)

// lines goes through the code of all files, without comments.
func lines(t *testing.T, each func(file, line string)) {
	t.Helper()
	require.NoError(t, fs.WalkDir(scripts.FS, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := scripts.FS.Open(file)
		if err != nil {
			return err
		}
		header := false
		for read := bufio.NewScanner(text); read.Scan(); {
			line, _, _ := strings.Cut(read.Text(), "-- ")
			header = (header || strings.HasPrefix(line, "--[[")) && line != "]]"
			if !header && !strings.HasPrefix(line, "--") {
				each(file, line)
			}
		}
		return text.Close()
	}))
}

// codecs are the files that may know the form of a text, each of one: what is stored, a
// wake-up, the mode of a call, the extra of a reply.
var codecs = map[string]string{
	"state/values.lua":    "values",
	"state/revision.lua":  "revision",
	"state/pause.lua":     "pause",
	"state/thin.lua":      "thin name",
	"state/record.lua":    "record",
	"pool/settings.lua":   "settings",
	"line/place.lua":      "place",
	"owner/group.lua":     "group",
	"pool/counts.lua":     "counts of a pool",
	"pool/item.lua":       "item",
	"pool/wants.lua":      "wants",
	"pool/binding.lua":    "binding",
	"pool/lane.lua":       "member of a lane",
	"swarm/member.lua":    "member",
	"pool_refresh.lua":    "turn",
	"wake/wake.lua":       "wake-up",
	"owner/ask.lua":       "how a lock is asked for",
	"state/ask.lua":       "what an acquire and a release say",
	"fast/wait.lua":       "reply to a claim that waits",
	"owner/renewal.lua":   "mode",
	"line/renewal.lua":    "mode",
	"owner/reentered.lua": "terms of an entry",
	"notice_set.lua":      "notice",
	"once/run.lua":        "run",
	"fence/outdated.lua":  "fence",
	"fence_admit.lua":     "fence",
	"fence_forget.lua":    "fence",
}

// form is what a text is written or read by: a pattern, a form with places for numbers or
// texts, words joined with a space, a fixed position in a text, the mark of a tombstone.
var form = regexp.MustCompile(`"[^"]*%[-?\d]*[dsaSw.][^"]*"|\.\. " |sub\(\w+, (\d+, )?\d\d|"!`)

// A name's texts are parsed and written in one file each: who changes one knows where.
func TestEachTextIsReadAndWrittenInOneFile(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	var strangers []string
	lines(t, func(file, line string) {
		if !form.MatchString(strings.ReplaceAll(line, `"%d"`, "")) { // one number is no text of ours
			return
		}
		if used[file] = true; codecs[file] == "" {
			strangers = append(strangers, file+": "+line)
		}
	})
	require.Empty(t, strings.Join(strangers, "\n"))
	for file := range codecs {
		require.True(t, used[file], "%s knows no text", file)
	}
}

// The score ranges stand in one file.
func TestTheScoreRangesStandInOneFile(t *testing.T) {
	t.Parallel()
	found := 0
	lines(t, func(file, line string) {
		if regexp.MustCompile(`\b10000000000000\b|1e13`).MatchString(line) {
			require.Equal(t, "state/score.lua", file, "%s", line)
			found++
		}
	})
	require.Positive(t, found)
}

// A reader has a file before the eyes: only the inspection, which goes through all that a pool
// has, the kinds, the lanes and the record, whose comment is its table, are longer.
func TestFilesAreShort(t *testing.T) {
	t.Parallel()
	limits := map[string]int{"pool_inspect.lua": 250, "kind/lock.lua": 115, "kind/pool.lua": 120, "pool/lane.lua": 120, "pool/item.lua": 110, "pool/apart.lua": 105, "state/record.lua": 180}
	require.NoError(t, fs.WalkDir(scripts.FS, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := scripts.FS.ReadFile(file)
		limit, longer := limits[file]
		if !longer {
			limit = 100
		}
		require.LessOrEqual(t, strings.Count(string(text), "\n"), limit, file)
		for line := range strings.Lines(string(text)) {
			require.LessOrEqual(t, len(strings.TrimSpace(line)), 120, "%s: %s", file, line)
		}
		return err
	}))
}

// A definition that nothing names is dead, or misspelt: a hook of another name would count as false.
func TestEachDefinitionIsNamed(t *testing.T) {
	t.Parallel()
	named, defined := map[string]int{}, map[string]string{}
	lines(t, func(file, line string) {
		for _, name := range regexp.MustCompile(`\w+`).FindAllString(line, -1) {
			named[name]++
		}
		if m := regexp.MustCompile(`^local (?:function )?(\w+)`).FindStringSubmatch(line); m != nil && strings.Contains(file, "/") {
			defined[m[1]] = file
		}
	})
	require.NotEmpty(t, defined)
	for name, file := range defined {
		hook := slices.Contains(scripts.Hooks, name) || slices.Contains(scripts.Needed, name)
		require.True(t, hook || named[name] > 1, "%s defines %s, which nothing names", file, name)
	}
}
