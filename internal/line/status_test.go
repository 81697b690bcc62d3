package line_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/scripts"
	"github.com/berth-go/berth/scripts/composed"
)

// kinds are what the names of the scripts begin with, and the package of each.
var kinds = map[string]string{"semaphore": "semaphore", "lock": "qlock", "pool": "allocator"}

// verbs are what every kind has a script for.
var verbs = []string{"acquire", "release", "renew", "resume", "restore", "sweep", "force_release", "pause", "want"}

// locks are the scripts of one kind that are run here all the same.
var locks = []string{"lock_requeue", "lock_force_hold"}

// constants are the values of a file's text constants of a prefix and a type, of any type where that is empty, sorted.
func constants(t *testing.T, file, prefix, kind string) (values []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	require.NoError(t, err)
	ast.Inspect(parsed, func(n ast.Node) bool {
		if value, ok := n.(*ast.ValueSpec); ok && (kind == "" || fmt.Sprint(value.Type) == kind) {
			for i, name := range value.Names {
				if strings.HasPrefix(name.Name, prefix) {
					words, err := strconv.Unquote(value.Values[i].(*ast.BasicLit).Value)
					require.NoError(t, err)
					values = append(values, words)
				}
			}
		}
		return true
	})
	slices.Sort(values)
	return values
}

// statuses are the values of a file's constants status..., sorted.
func statuses(t *testing.T, file string) []string {
	t.Helper()
	return constants(t, file, "status", "")
}

// engineWords are the values of the engine's constants of a type.
func engineWords(t *testing.T, kind string) []string {
	t.Helper()
	return constants(t, "../engine/scripts.go", "", kind)
}

// distinct sorts and drops repeats.
func distinct(words []string) []string {
	slices.Sort(words)
	return slices.Compact(words)
}

// without drops words.
func without(words []string, drop ...string) []string {
	return slices.DeleteFunc(words, func(word string) bool { return slices.Contains(drop, word) })
}

// found are the first groups of all matches, sorted and without repeats.
func found(pattern, text string) []string {
	var words []string
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		words = append(words, match[1])
	}
	return distinct(words)
}

// source is a script as it is written, comments included.
func source(t *testing.T, path string) string {
	t.Helper()
	raw, err := fs.ReadFile(scripts.FS, path)
	require.NoError(t, err)
	return string(raw)
}

// function is the body of a function of a script.
func function(t *testing.T, raw, name string) string {
	t.Helper()
	_, body, ok := strings.Cut(raw, "local function "+name+"(")
	require.True(t, ok, name)
	body, _, ok = strings.Cut(body, "\nend\n")
	require.True(t, ok, name)
	return body
}

// scriptsOf are the names of a kind's scripts: those for what every kind does, and the others.
func scriptsOf(kind string) (shared, own []string) {
	for _, script := range composed.Library().Scripts() {
		verb, ok := strings.CutPrefix(script.Name, kind+"_")
		switch {
		case !ok:
		case slices.Contains(locks, script.Name):
		case slices.Contains(verbs, verb):
			shared = append(shared, script.Name)
		default:
			own = append(own, script.Name)
		}
	}
	return shared, own
}

// declared are the statuses of the headers of scripts, sorted.
func declared(names ...string) []string {
	var words []string
	for _, name := range names {
		for _, reply := range composed.Library().Script(name).Returns {
			words = append(words, reply.Status)
		}
	}
	return distinct(words)
}

func TestTheStatusesOfTheHeadersAreThoseThatGoKnows(t *testing.T) {
	t.Parallel()
	shared := statuses(t, "status.go")
	every := slices.Clone(locks)
	for kind := range kinds {
		verbal, _ := scriptsOf(kind)
		require.Len(t, verbal, len(verbs), "every kind has all")
		every = append(every, verbal...)
	}
	every = append(every, "notice_set")
	require.Equal(t, without(declared(every...), scriptkit.Plain), shared, "of the scripts that are run here")

	for kind, folder := range kinds {
		// What an own script's reply is compared with is declared where that is done, once.
		_, own := scriptsOf(kind)
		require.Equal(t, without(declared(own...), "incompatible"), statuses(t, "../../pkg/"+folder+"/script.go"), kind)
	}
	for kind, file := range map[string]string{"swarm": "../swarm/script.go", "once": "../../pkg/once/script.go"} {
		_, own := scriptsOf(kind)
		require.Equal(t, declared(own...), statuses(t, file), kind)
	}
}

func TestTheWordsOfARenewalAreThoseOfTheEngine(t *testing.T) {
	t.Parallel()
	body := function(t, source(t, "line/renew.lua"), "renew")
	words := append(tombstones(t), found(`reply\[c\.at\] = [^"\n]*"(\w+)"`, function(t, source(t, "line/wanted.lua"), "wanted_by"))...)
	for _, said := range found(`\bword(?:, [\w.]+)* = (.*)`, body) {
		words = append(words, found(`"(\w+)"`, said)...)
	}
	want := without(engineWords(t, "Word"), "absent") // a restore alone says so
	require.Equal(t, want, distinct(words))
	words = found(`"renewed", [^"\n]*"(\w+)"`, source(t, "fast/pool_renew.lua"))
	require.NotEmpty(t, words)
	require.Subset(t, engineWords(t, "Word"), words)
}

func TestTheWordsOfARestoreAreThoseOfTheEngine(t *testing.T) {
	t.Parallel()
	words := append(tombstones(t), found(`return "(\w+)"`, function(t, source(t, "line/restore.lua"), "restore_claim"))...)
	words = append(words, found(`return "(\w+)"`, function(t, source(t, "pool/apart.lua"), "apart_rejoin"))...)
	// What is not known is put back, so no claim stays unknown.
	require.Equal(t, without(engineWords(t, "Word"), "limited", "unknown", "asked", "wanted"), distinct(words))
}

// tombstones are the words that a tombstone may say.
func tombstones(t *testing.T) []string {
	t.Helper()
	// said are the words that a script with all that it includes leaves.
	said := func(name string) []string {
		raw := composed.Library().Script(name).Source()
		return distinct(slices.Concat(found(`\("!"\) \.\. "(\w+)"`, raw), found(`\bleave\([^\n]*"(\w+)"[^\n]*\bstays\b`, raw)))
	}
	for kind := range kinds {
		require.Equal(t, []string{"gone"}, said(kind+"_release"))
		require.Equal(t, []string{"released"}, said(kind+"_force_release"))
	}
	var words []string
	for _, script := range composed.Library().Scripts() {
		words = append(words, said(script.Name)...)
	}
	words = distinct(words)
	require.Equal(t, []string{"gone", "released"}, words)
	told := constants(t, "status.go", "told", "")
	require.Subset(t, words, told)
	return words
}

func TestTheAnswersToAReleaseAreThoseOfTheEngine(t *testing.T) {
	t.Parallel()
	for kind := range kinds {
		want := without(declared(kind+"_release"), "incompatible", "plain") // plain is released
		want = append(want, "force_released")                               // not_held, with the word of an operator's tombstone
		require.Equal(t, distinct(want), engineWords(t, "Released"), kind)
	}
}

// A wake-up that the engine does not know would be lost on every hand-off.
func TestTheWakeUpsThatScriptsSendAreThoseThatTheEngineTakes(t *testing.T) {
	t.Parallel()
	sends := regexp.MustCompile(`\bwake\(at, (?:[^,()\n]|\([^()\n]*\))+, "(\w+)", (?:at\.)?name\b`)
	sent := map[string][]string{}
	for _, script := range composed.Library().Scripts() {
		calls := strings.Count(script.Source(), "wake(") - strings.Count(script.Source(), "local function wake(")
		words := sends.FindAllStringSubmatch(script.Source(), -1)
		require.Len(t, words, calls, "all say their word so that this test finds it: %s", script.Name)
		kind, _, _ := strings.Cut(script.Name, "_")
		for _, word := range words {
			sent[kind] = append(sent[kind], word[1])
		}
	}
	require.Len(t, sent, len(kinds), "nobody else wakes a node")
	for kind := range kinds {
		want := taken(t)
		if kind != "pool" {
			want = without(want, "absent")
		}
		require.Equal(t, want, distinct(sent[kind]), kind)
	}
}

// taken are the words in the switch of Engine.deliver.
func taken(t *testing.T) []string {
	t.Helper()
	raw, err := os.ReadFile("../engine/push.go")
	require.NoError(t, err)
	_, body, ok := strings.Cut(string(raw), ") deliver(")
	require.True(t, ok)
	body, _, _ = strings.Cut(body, "\n}\n")
	return found(`"(\w+)"`, strings.Join(found(`(?m)^\tcase (.*):$`, body), " "))
}
