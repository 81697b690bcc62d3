package semaphore_test

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

	"github.com/berth-go/berth/pkg/semaphore"
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
					values = append(values, text(t, value.Values[i]))
				}
			}
		}
	}
	slices.Sort(values)
	return values
}

func text(t *testing.T, literal ast.Expr) string {
	t.Helper()
	value, err := strconv.Unquote(literal.(*ast.BasicLit).Value)
	require.NoError(t, err)
	return value
}

// set sorts and drops repeats.
func set(words []string) []string {
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
	for _, script := range semaphore.Library().Scripts() {
		if !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(script.Name, p) }) {
			continue
		}
		for _, reply := range script.Header.Returns {
			words = append(words, reply.Status)
		}
	}
	return set(words)
}

// statuses are the values of a file's constants status..., sorted.
func statuses(t *testing.T, file string) []string {
	t.Helper()
	return constants(t, file, func(name, _ string) bool { return strings.HasPrefix(name, "status") })
}

func TestTheStatusesOfTheHeadersAreThoseThatGoKnows(t *testing.T) {
	t.Parallel()
	shared, own := statuses(t, "../../internal/claims/status.go"), statuses(t, "script.go")
	require.Subset(t, shared, declared("claim_"))
	require.Equal(t, declared("claim_", "semaphore_release", "semaphore_renew", "semaphore_resume"), shared,
		"of the shared scripts, and of those whose reply is read in one place")
	require.Equal(t, declared("claim_", "semaphore_"), set(slices.Concat(shared, own)))
	for _, word := range own {
		require.NotContains(t, shared, word, "each is declared once")
	}
}

// engineWords are the values of the engine's constants of a type.
func engineWords(t *testing.T, kind string) []string {
	t.Helper()
	return constants(t, "../../internal/engine/scripts.go", func(_, k string) bool { return k == kind })
}

func TestTheWordsOfARenewalAreThoseOfTheEngine(t *testing.T) {
	t.Parallel()
	raw := source(t, "lib/beats.lua")
	var words []string
	for _, line := range regexp.MustCompile(`(?m)^--   (\w+(?:, \w+)*)  `).FindAllStringSubmatch(raw, -1) {
		words = append(words, strings.Split(line[1], ", ")...)
	}
	require.Equal(t, engineWords(t, "Word"), set(words), "as the comment says")

	_, body, found := strings.Cut(raw, "local function renew(")
	require.True(t, found)
	body, _, found = strings.Cut(body, "\n  end\n")
	require.True(t, found)
	words = tombstones(t)
	for _, line := range regexp.MustCompile(`return .*?"(\w+)", `).FindAllStringSubmatch(body, -1) {
		words = append(words, line[1])
	}
	require.Equal(t, engineWords(t, "Word"), set(words), "as the script does")
}

func TestTheWordsOfARestoreAreThoseOfTheEngine(t *testing.T) {
	t.Parallel()
	raw := source(t, "lib/restore.lua")
	comment := regexp.MustCompile(`(?s)what it is now:\n-- (.*?), and until`).FindStringSubmatch(raw)
	require.NotNil(t, comment)
	words := strings.Split(strings.ReplaceAll(comment[1], " or ", ", "), ", ")
	// What is not known is put back, so no claim stays unknown.
	want := slices.DeleteFunc(engineWords(t, "Word"), func(word string) bool { return word == "unknown" })
	require.Equal(t, want, set(words), "as the comment says")

	_, body, found := strings.Cut(raw, "local function restore(")
	require.True(t, found)
	body, _, found = strings.Cut(body, "\nend\n")
	require.True(t, found)
	words = tombstones(t)
	for _, line := range regexp.MustCompile(`return "(\w+)"`).FindAllStringSubmatch(body, -1) {
		words = append(words, line[1])
	}
	require.Equal(t, want, set(words), "as the script does")
}

// tombstones are the words that a tombstone may say.
func tombstones(t *testing.T) []string {
	t.Helper()
	var words []string
	for _, script := range []string{"semaphore_release.lua", "claim_force_release.lua"} {
		raw := source(t, script)
		for _, pattern := range []string{`"!(\w+)"`, `leave\([^\n]*"(\w+)"[^\n]*stays\)`} {
			for _, word := range regexp.MustCompile(pattern).FindAllStringSubmatch(raw, -1) {
				words = append(words, word[1])
			}
		}
	}
	words = set(words)
	require.Equal(t, []string{"gone", "released"}, words)
	return words
}

func TestTheAnswersToAReleaseAreThoseOfTheEngine(t *testing.T) {
	t.Parallel()
	want := []string{"force_released"} // not_held, with the word of an operator's tombstone
	for _, reply := range semaphore.Library().Script("semaphore_release").Header.Returns {
		if reply.Status != "incompatible" {
			want = append(want, reply.Status)
		}
	}
	require.Equal(t, set(want), engineWords(t, "Released"))
}

func TestTheModesOfARenewalAreThoseOfTheEngine(t *testing.T) {
	t.Parallel()
	header := regexp.MustCompile(`mode \((.*?)\)`).FindStringSubmatch(source(t, "semaphore_renew.lua"))
	require.NotNil(t, header)
	require.Equal(t, engineWords(t, "Mode"), set(strings.Split(header[1], ", ")))
}

// A wake-up that the engine does not know would be lost on every hand-off.
func TestTheWakeUpsThatScriptsSendAreThoseThatTheEngineTakes(t *testing.T) {
	t.Parallel()
	var sent []string
	err := fs.WalkDir(scripts.FS, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !regexp.MustCompile(`^(lib/|claim_|semaphore_)`).MatchString(path) {
			return err
		}
		for _, call := range regexp.MustCompile(`wake\(out, [^,\n]+, "(\w+)", at\.name`).FindAllStringSubmatch(source(t, path), -1) {
			sent = append(sent, call[1])
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, taken(t), set(sent))
}

// taken are the words in the switch of Engine.deliver.
func taken(t *testing.T) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), "../../internal/engine/engine.go", nil, 0)
	require.NoError(t, err)
	var words []string
	for _, decl := range parsed.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Name.Name != "deliver" {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if clause, ok := n.(*ast.CaseClause); ok {
				for _, word := range clause.List {
					words = append(words, text(t, word))
				}
			}
			return true
		})
	}
	return set(words)
}
