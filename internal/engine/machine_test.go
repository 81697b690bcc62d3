package engine

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

func TestHistoriesOfAClaim(t *testing.T) {
	for _, h := range histories(t) {
		t.Run(h.title, func(t *testing.T) {
			if err := h.play(&course, nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// met are the histories in which an event meets a phase.
func metBy(all []*history) (met [kinds][phases][]*history) {
	for _, h := range all {
		_ = h.play(&course, func(k kind, p phase) {
			if by := met[k][p]; len(by) == 0 || by[len(by)-1] != h {
				met[k][p] = append(by, h)
			}
		})
	}
	return met
}

// change is an entry of the table that is another one; rules stands for any.
type change struct {
	kind  kind
	phase phase
	rule  rule
}

// unseen are the changes that no history can tell, and why.
var unseen = map[change]string{
	{evMissed, asking, misses}:           "no heartbeat of a claim that asks is on its way",
	{evLook, held, believes}:             "a push is of use only until the claim is granted",
	{evLook, loose, believes}:            "a push is of use only until the claim is granted",
	{evLook, detached, believes}:         "a push is of use only until the claim is granted",
	{evSwapOver, asking, unswaps}:        "an exchange begins only in a hold",
	{evSwapOver, waiting, unswaps}:       "an exchange begins only in a hold",
	{evSwapOver, granted, unswaps}:       "an exchange begins only in a hold",
	{evRelease, detached, releasesAgain}: "what is detached counts as released, with nil: to repeat is to return that",
	{evReleased, detached, concludes}:    "what is detached counts as released, with nil: no answer says more",
}

// Every entry of the table is there for a reason, and so is every one that is not.
func TestAnEntryOfTheTableThatChangesIsFound(t *testing.T) {
	met, missed := metBy(histories(t)), make(map[change]bool)
	for k := range kinds {
		for p := range phases {
			for _, r := range others(k, p) {
				changed := course
				changed[k][p] = r
				if finds(met[k][p], &changed) {
					continue
				}
				known := change{k, p, r}
				if _, whole := unseen[change{k, p, rules}]; whole {
					known.rule = rules
				}
				missed[known] = true
				if unseen[known] == "" {
					t.Errorf("%s, %s: no history finds that it %s where it %s", kindNames[k], phaseNames[p], ruleNames[r], ruleNames[course[k][p]])
				}
			}
		}
	}
	for c, why := range unseen {
		if !missed[c] {
			t.Errorf("%s, %s is not unseen: %s", kindNames[c.kind], phaseNames[c.phase], why)
		}
	}
}

// finds says whether one of the histories comes out differently by a table.
func finds(all []*history, by *table) bool {
	return slices.ContainsFunc(all, func(h *history) bool { return h.play(by, nil) != nil })
}

// others are the rules that an entry might be instead: none, and those of its row and its
// column.
func others(k kind, p phase) (all []rule) {
	seen := map[rule]bool{course[k][p]: true}
	add := func(r rule) {
		if !seen[r] {
			seen[r] = true
			all = append(all, r)
		}
	}
	add(ignores)
	for _, r := range course[k] {
		add(r)
	}
	if course[k][p] != ignores {
		for other := range kinds {
			add(course[other][p])
		}
	}
	return all
}

var update = flag.Bool("update", false, "write the table of a claim into docs/architecture.md")

func TestTheDocumentShowsTheTable(t *testing.T) {
	const file, begin, end = "../../docs/architecture.md", "<!-- the table of a claim -->\n", "<!-- end of the table -->\n"
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	before, rest, begins := strings.Cut(string(text), begin)
	shown, after, ends := strings.Cut(rest, end)
	require.True(t, begins && ends, "the document has a place for the table")
	if want := tableText(); *update {
		require.NoError(t, os.WriteFile(file, []byte(before+begin+want+end+after), 0o600))
	} else {
		require.Equal(t, want, shown, "go test ./internal/engine -run TestTheDocumentShowsTheTable -update writes it")
	}
}

// tableText is the table as Markdown, and what its rules do.
func tableText() string {
	var text strings.Builder
	fmt.Fprintf(&text, "\n| event | | %s |\n|%s\n", strings.Join(phaseNames[:phases], " | "), strings.Repeat("---|", int(phases)+2))
	for k := range kinds {
		fmt.Fprintf(&text, "| %s | %s |", kindNames[k], kindTexts[k])
		for _, r := range course[k] {
			if r != ignores {
				text.WriteString(" " + ruleNames[r])
			}
			text.WriteString(" |")
		}
		text.WriteString("\n")
	}
	text.WriteString("\n")
	for r := ignores + 1; r < rules; r++ {
		fmt.Fprintf(&text, "- **%s**: %s\n", ruleNames[r], ruleTexts[r])
	}
	return text.String() + "\n"
}

// The constants in machine.go and state.go, which only tests and docs want to know by name.
var (
	kindNames, kindTexts = constants("machine.go", "kind", "ev")
	phaseNames, _        = constants("machine.go", "phase", "")
	ruleNames, ruleTexts = constants("machine.go", "rule", "")
	deedNames, _         = constants("state.go", "deed", "do")
)

func kindNamed(name string) kind {
	i := slices.Index(kindNames[:kinds], name)
	if i < 0 {
		panic("no event: " + name)
	}
	return kind(i)
}

// constants are the names of a type's constants in a file, without a prefix, as words, and
// what their comments say.
func constants(file, of, prefix string) (names, texts []string) {
	tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		panic(err)
	}
	for _, decl := range tree.Decls {
		block, ok := decl.(*ast.GenDecl)
		if !ok || block.Tok != token.CONST {
			continue
		}
		first, _ := block.Specs[0].(*ast.ValueSpec).Type.(*ast.Ident)
		if first == nil || first.Name != of {
			continue
		}
		for _, spec := range block.Specs {
			value := spec.(*ast.ValueSpec)
			names = append(names, words(strings.TrimPrefix(value.Names[0].Name, prefix)))
			texts = append(texts, strings.TrimSpace(value.Comment.Text()))
		}
	}
	return names, texts
}

// words has hyphens in the place of capitals.
func words(name string) string {
	var text strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			text.WriteByte('-')
		}
		text.WriteRune(unicode.ToLower(r))
	}
	return text.String()
}
