package qlock_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/scripts"
)

// constants are the values of a file's text constants for whose name and type
// wanted is true, sorted.
func constants(t *testing.T, file string, wanted func(name, kind string) bool) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	require.NoError(t, err)
	var values []string
	for _, decl := range parsed.Decls {
		block, ok := decl.(*ast.GenDecl)
		if !ok || block.Tok != token.CONST {
			continue
		}
		for _, spec := range block.Specs {
			value := spec.(*ast.ValueSpec)
			kind, _ := value.Type.(*ast.Ident)
			if kind == nil {
				kind = &ast.Ident{}
			}
			for i, name := range value.Names {
				if wanted(name.Name, kind.Name) {
					value, err := strconv.Unquote(value.Values[i].(*ast.BasicLit).Value)
					require.NoError(t, err)
					values = append(values, value)
				}
			}
		}
	}
	slices.Sort(values)
	return values
}

// distinct sorts and drops repeats.
func distinct(words []string) []string {
	slices.Sort(words)
	return slices.Compact(words)
}

// source is a script as it is written, comments included.
func source(t *testing.T, path string) string {
	t.Helper()
	raw, err := fs.ReadFile(scripts.FS, path)
	require.NoError(t, err)
	return string(raw)
}

// declared are the statuses of the scripts whose names begin so, sorted.
func declared(prefixes ...string) []string {
	var words []string
	for _, script := range qlock.Library().Scripts() {
		if !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(script.Name, p) }) {
			continue
		}
		for _, reply := range script.Header.Returns {
			words = append(words, reply.Status)
		}
	}
	return distinct(words)
}

// statuses are the values of a file's constants status..., sorted.
func statuses(t *testing.T, file string) []string {
	t.Helper()
	return constants(t, file, func(name, _ string) bool { return strings.HasPrefix(name, "status") })
}

func TestTheStatusesOfTheHeadersAreThoseThatGoKnows(t *testing.T) {
	t.Parallel()
	shared, own := statuses(t, "../../internal/line/status.go"), statuses(t, "script.go")
	every := []string{"claim_"}
	for _, kind := range []string{"semaphore", "lock", "pool"} {
		for _, verb := range []string{"acquire", "release", "renew", "resume", "restore", "sweep", "force_release"} {
			every = append(every, kind+"_"+verb)
		}
	}
	require.Equal(t, declared(every...), shared, "of the scripts that every kind has, and of those that read a line")
	require.Equal(t, declared(append(every, "lock_")...), distinct(slices.Concat(shared, own)))

	// What an own script's reply is compared with is declared where that is done; a claim
	// that is requeued is told what acquire tells it.
	wanted := declared("lock_requeue", "lock_force_hold", "lock_extend", "lock_info")
	wanted = slices.DeleteFunc(wanted, func(word string) bool { return word == "incompatible" || word == "queued" })
	require.Equal(t, wanted, own)
}

// engineWords are the values of the engine's constants of a type.
func engineWords(t *testing.T, kind string) []string {
	t.Helper()
	return constants(t, "../../internal/engine/scripts.go", func(_, k string) bool { return k == kind })
}

// tombstones are the words that a tombstone of a lock may say.
func tombstones(t *testing.T) []string {
	t.Helper()
	var words []string
	for _, script := range []string{"lock_release", "lock_force_hold", "lock_force_release"} {
		composed := qlock.Library().Script(script).Source
		found := false
		for _, pattern := range []string{`record_stone\("(\w+)"\)`, `leave\([^\n]*"(\w+)"[^\n]*stays[^\n]*\)`} {
			for _, word := range regexp.MustCompile(pattern).FindAllStringSubmatch(composed, -1) {
				words, found = append(words, word[1]), true
			}
		}
		require.True(t, found, script)
	}
	words = distinct(words)
	require.Equal(t, []string{"gone", "released"}, words)
	return words
}

func TestTheWordsOfARenewalAreThoseOfTheEngine(t *testing.T) {
	t.Parallel()
	_, body, found := strings.Cut(source(t, "line/renew.lua"), "local function renew(")
	require.True(t, found)
	body, _, found = strings.Cut(body, "\nend\n")
	require.True(t, found)
	words := tombstones(t)
	for _, line := range regexp.MustCompile(`\bword\b[\w, ]* = .*?"(\w+)"`).FindAllStringSubmatch(body, -1) {
		words = append(words, line[1])
	}
	require.Equal(t, engineWords(t, "Word"), distinct(words))
	require.Contains(t, source(t, "kind/lock.lua"), "local kind_heavy = false\n", "a lock's claim is never too heavy")
}

func TestTheModesOfARenewalAreThoseOfTheEngine(t *testing.T) {
	t.Parallel()
	header := regexp.MustCompile(`mode \((.*?),\s"extend <ms> <call id>"\)`).FindStringSubmatch(source(t, "lock_renew.lua"))
	require.NotNil(t, header)
	words := slices.DeleteFunc(strings.Split(header[1], ", "), func(word string) bool { return strings.Contains(word, `"beat `) || strings.HasPrefix(word, "ms>") })
	require.Equal(t, engineWords(t, "Mode"), distinct(words))
}

func TestTheAnswersToAReleaseAreThoseOfTheEngine(t *testing.T) {
	t.Parallel()
	want := []string{"force_released"} // not_held, with the word of an operator's tombstone
	for _, reply := range qlock.Library().Script("lock_release").Header.Returns {
		if reply.Status != "incompatible" {
			want = append(want, reply.Status)
		}
	}
	require.Equal(t, distinct(want), engineWords(t, "Released"))
}

// The scripts know an access and a conflict strategy by the word that String says.
func TestTheStrategiesOfTheScriptsAreThoseOfTheOptions(t *testing.T) {
	t.Parallel()
	header := regexp.MustCompile(`conflict \((.*?)\)\n.*access \((.*?)\)`).FindStringSubmatch(source(t, "lock_acquire.lua"))
	require.NotNil(t, header)
	var conflicts, accesses []string
	for _, s := range []qlock.Conflict{qlock.FailDeadlock, qlock.Wait, qlock.WorkThrough, qlock.ExtendAndWorkThrough} {
		conflicts = append(conflicts, s.String())
	}
	for _, a := range []qlock.Access{qlock.Queued, qlock.Random, qlock.LIFO} {
		accesses = append(accesses, a.String())
	}
	require.Equal(t, strings.Split(header[1], ", "), conflicts)
	require.Equal(t, strings.Split(header[2], ", "), accesses)
	require.Equal(t, "unknown", qlock.Conflict(9).String())
	require.Equal(t, "unknown", qlock.Access(0).String())
}
