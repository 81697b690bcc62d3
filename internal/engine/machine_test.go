package engine

import (
	"os"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
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
func metBy(all []*history) (met [eventKinds][phases][]*history) {
	for _, h := range all {
		_ = h.play(&course, func(k eventKind, p phase) {
			if by := met[k][p]; len(by) == 0 || by[len(by)-1] != h {
				met[k][p] = append(by, h)
			}
		})
	}
	return met
}

// change is an entry of the table that is another one.
type change struct {
	kind  eventKind
	phase phase
	rule  string
}

// unseen are the changes that no history can tell, and why.
var unseen = map[change]string{
	{evMissed, asking, "misses"}:           "no heartbeat of a claim that asks is on its way",
	{evLook, held, "believes"}:             "a push is of use only until the claim is granted",
	{evLook, loose, "believes"}:            "a push is of use only until the claim is granted",
	{evLook, detached, "believes"}:         "a push is of use only until the claim is granted",
	{evSwapOver, asking, "unswaps"}:        "an exchange begins only in a hold",
	{evSwapOver, waiting, "unswaps"}:       "an exchange begins only in a hold",
	{evSwapOver, granted, "unswaps"}:       "an exchange begins only in a hold",
	{evRelease, detached, "releasesAgain"}: "what is detached counts as released, with nil: to repeat is to return that",
	{evReleased, detached, "concludes"}:    "what is detached counts as released, with nil: no answer says more",
}

// Every entry of the table is there for a reason, and so is every one that is not.
func TestAnEntryOfTheTableThatChangesIsFound(t *testing.T) {
	met, missed := metBy(histories(t)), make(map[change]bool)
	for k := range eventKinds {
		for p := range phases {
			for _, r := range others(k, p) {
				changed := course
				changed[k][p] = r
				if finds(met[k][p], &changed) {
					continue
				}
				known := change{k, p, r.name()}
				missed[known] = true
				if unseen[known] == "" {
					t.Errorf("%s, %s: no history finds that it %s where it %s", kindNames[k], phaseNames[p], r.name(), course[k][p].name())
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
func others(k eventKind, p phase) (all []rule) {
	seen := map[string]bool{course[k][p].name(): true}
	add := func(r rule) {
		if !seen[r.name()] {
			seen[r.name()] = true
			all = append(all, r)
		}
	}
	add(nil)
	for _, r := range course[k] {
		add(r)
	}
	if course[k][p] != nil {
		for other := range eventKinds {
			add(course[other][p])
		}
	}
	return all
}

// name is that of the rule's function.
func (r rule) name() string {
	if r == nil {
		return "ignores"
	}
	full := runtime.FuncForPC(reflect.ValueOf(r).Pointer()).Name()
	return full[strings.LastIndex(full, ".")+1:]
}

// The constants in machine.go and state.go, which only tests want to know by name.
var (
	kindNames   = constants("machine.go", "eventKind", "ev")
	phaseNames  = constants("machine.go", "phase", "")
	actionNames = constants("state.go", "action", "do")
)

func kindNamed(name string) eventKind {
	i := slices.Index(kindNames[:eventKinds], name)
	if i < 0 {
		panic("no event: " + name)
	}
	return eventKind(i)
}

// constants are the names of a type's constants in a file, without a prefix, as words.
func constants(file, of, prefix string) (names []string) {
	text, err := os.ReadFile(file)
	if err != nil {
		panic(err)
	}
	block := regexp.MustCompile(`(?ms)^const \(\n\t\w+ +` + of + ` += .*?^\)`).Find(text)
	for _, name := range regexp.MustCompile(`(?m)^\t(\w+)`).FindAllSubmatch(block, -1) {
		names = append(names, words(strings.TrimPrefix(string(name[1]), prefix)))
	}
	return names
}

// words has hyphens in the place of capitals.
func words(name string) string {
	return strings.ToLower(regexp.MustCompile(`\B[A-Z]`).ReplaceAllString(name, "-$0"))
}
