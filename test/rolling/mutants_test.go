package rolling

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/tools/compose"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// edit replaces text in a file of scripts, everywhere in it.
type edit struct{ file, was, is string }

// general leaves all that fat names are asked for to the general way, so that a mutant
// need not change what the plain cases read and write.
var general = edit{"state/values.lua", `values_newer = "4"`, `values_newer = "0"`}

// generally is the same for pools.
var generally = edit{"state/values.lua", `1000000000000001 0 0 1 0`, `-000000000000001 0 0 1 0`}

// renamed replaces a text in several files.
func renamed(was, is string, files ...string) (edits []edit) {
	for _, file := range files {
		edits = append(edits, edit{file + ".lua", was, is})
	}
	return edits
}

// mutants are changes of the format that keep a release whole by itself and break it
// beside another one, whose number they forgot to raise.
var mutants = map[string]struct {
	by    string // the play that they must fail
	edits []edit
}{
	"two words of a record change places": {"lock/entries", []edit{
		general,
		{"state/record.lua", "wanted, ticket, fence, granted,", "wanted, fence, ticket, granted,"},
		{"state/record.lua", `r.ticket .. " " .. r.fence`, `r.fence .. " " .. r.ticket`},
	}},
	"a record's phase has another letter": {"semaphore/life", []edit{
		{"state/record.lua", "return r.phase .. r.number", `return (r.phase == "d" and "D" or r.phase) .. r.number`},
		{"state/record.lua", "node = node, phase = phase,", `node = node, phase = phase == "D" and "d" or phase,`},
	}},
	"a waiter's record says when it was heard of": {"lock/life", []edit{
		general,
		{"state/record.lua", "alive = (alive or 0) + 0", "alive = alive and alive + wait or 0"},
		{"state/record.lua", " r.alive, r.alive -", " r.alive - r.wait, r.alive -"},
		{"line/dead.lua", "alive - ms <= 0", "alive + 60000 - ms <= 0"},
	}},
	"the sum of what is held and the count of endless holds change places": {"semaphore/weights", []edit{
		general,
		{"state/load.lua", "used = used and used - values_base or 0,", "used = 0,"},
		{"state/load.lua", "gone = 0, forever = 0,", "gone = 0, forever = used and used - values_base or 0,"},
		{"state/load.lua", "st.gone, st.forever, st.keep =", "st.gone, st.used, st.keep ="},
		{"state/save.lua", "st.forever ~= 0", "st.used ~= 0"},
		{"state/save.lua", "values_fewest, st.gone, st.forever,", "values_fewest, st.gone, st.used,"},
		{"state/save.lua", "math.max(st.used, 0)", "math.max(st.forever, 0)"},
	}},
	"the count of those who wait and that of tombstones change places": {"lock/life", []edit{
		general,
		{"state/load.lua", "waiting = waiting and waiting - values_line or 0,", "waiting = 0,"},
		{"state/load.lua", "gone = 0, forever = 0,", "gone = waiting and waiting - values_line or 0, forever = 0,"},
		{"state/load.lua", "st.gone, st.forever, st.keep =", "st.waiting, st.forever, st.keep ="},
		{"state/save.lua", "if st.gone ~= 0", "if st.waiting ~= 0"},
		{"state/save.lua", "values_fewest, st.gone,", "values_fewest, st.waiting,"},
		{"state/save.lua", "math.max(st.waiting, 0)", "math.max(st.gone, 0)"},
	}},
	"the values have another name": {"pool/life", slices.Concat(
		[]edit{general, generally}, renamed(`"v"`, `"V"`, "state/fetch", "state/save", "pool_acquire", "pool_release"),
		renamed(`"v", "fmt"`, `"V", "fmt"`, "pool_refresh"),
	)},
	"the last fence and the expiry change places": {"pool/stock", []edit{
		general, generally,
		{"state/load.lua", "local fmt, fence, exp,", "local fmt, exp, fence,"},
		{"state/save.lua", "st.fence, st.exp,", "st.exp, st.fence,"},
		{"state/values.lua", `"%d %016d %013d %013d`, `"%d %013d %016d %013d`},
	}},
	"holds are reckoned from elsewhere": {"semaphore/life", []edit{
		general,
		{"state/score.lua", "score_hold = 10000000000000", "score_hold = 20000000000000"},
		{"state/score.lua", `score_held = "1"`, `score_held = "2"`},
		{"state/score.lua", `"10000000000000"`, `"20000000000000"`},
		{"state/score.lua", `"19999999999998"`, `"29999999999998"`},
	}},
	"a place has more digits": {"semaphore/life", []edit{
		general,
		{"line/place.lua", `place_ticket = "%013d"`, `place_ticket = "%015d"`},
	}},
	"a place and its claim have another mark between them": {"pool/life", []edit{
		{"line/place.lua", `"^(%d+)%-(.+)$"`, `"^(%d+)%+(.+)$"`},
		{"line/place.lua", `place_mark = "-"`, `place_mark = "+"`},
	}},
	"a thin name says when its hold ends": {"lock/life", []edit{
		{"state/thin.lua", "since + lease, 0", "since + 0, 0"},
		{"line/thin.lua", "thin_text(fence, since, claim", "thin_text(fence, since + r.lease, claim"},
		{"thin_acquire.lua", "if text and (", "if true or text and ("},
		{"thin_renew.lua", "if text then", "if false then"},
	}},
	"two words of an owner's group change places": {"lock/entries", []edit{
		{"owner/group.lua", "more, own, deadline, call, rest", "more, deadline, own, call, rest"},
		{"owner/group.lua", "s.own, s.deadline)", "s.deadline, s.own)"},
	}},
	"two words of a lock's entry change places": {"lock/entries", []edit{
		{"owner/group.lua", "kind, ext, came, pending, id", "kind, came, ext, pending, id"},
		{"owner/group.lua", "e.ext, e.at, e.pending", "e.at, e.ext, e.pending"},
	}},
	"two words of a node change places": {"lock/swarm", []edit{
		{"swarm/member.lua", "local run, ends, limit, label", "local run, limit, ends, label"},
		{"swarm/member.lua", `ends .. " " .. limit`, `limit .. " " .. ends`},
	}},
	"two words of a resource change places": {"pool/stock", []edit{
		generally,
		{"pool/item.lua", "local max, expiry, ends, pend, rev,", "local max, ends, expiry, pend, rev,"},
		{"pool/item.lua", "i.max, i.expiry, i.ends, i.pend", "i.max, i.ends, i.expiry, i.pend"},
	}},
	"a resource leaves by another digit": {"pool/stock", []edit{
		{"pool/item.lua", `leaving = flags == "1" or flags == "3", own = flags + 0 > 1`, `leaving = flags + 0 > 1, own = flags == "1" or flags == "3"`},
		{"pool/item.lua", "(i.leaving and 1 or 0) + (i.own and 2 or 0)", "(i.leaving and 2 or 0) + (i.own and 1 or 0)"},
	}},
	"free resources stand the other way": {"pool/stock", []edit{
		generally,
		{"pool/free.lua", "int(st.fence), key,", "int(-st.fence), key,"},
		{"pool/free.lua", `policy == "m"`, `policy ~= "m"`},
	}},
	"what a claim holds has another name": {"pool/life", append(renamed(`"r:"`, `"R:"`, "pool_release",
		"pool_renew", "pool/open", "pool/holding", "pool/release", "pool_swap", "pool_inspect"), generally)},
	"two words of a binding change places": {"pool/stock", []edit{
		generally,
		{"pool/binding.lua", `int(ends) .. " " .. key`, `key .. " " .. int(ends)`},
		{"pool/binding.lua", `local ends, key = string.match(text or "", "^(%d+) (.*)$")`, `local key, ends = string.match(text or "", "^(.*) (%d+)$")`},
	}},
}

// A format that changes without its number must not pass the plays. By itself such a
// release is whole.
func TestAFormatThatChangesIsNoticed(t *testing.T) {
	was := previous(t)
	for what, mutant := range mutants {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			play, changed := plays[mutant.by], mutated(t, mutant.edits)
			require.NotNil(t, play, mutant.by)
			require.Empty(t, perform(t, changed, changed, unread(play)), "beside itself")
			failure := perform(t, changed, was.library, play)
			if failure == "" {
				failure = perform(t, was.library, changed, play)
			}
			require.NotEmpty(t, failure)
			t.Log(failure)
		})
	}
}

// mutated is today's scripts with the edits.
func mutated(t *testing.T, edits []edit) *scriptkit.Library {
	t.Helper()
	files := compose.Sources()
	for _, e := range edits {
		file := files[e.file]
		require.NotNil(t, file, e.file)
		require.Contains(t, string(file.Data), e.was, e.file)
		file.Data = bytes.ReplaceAll(file.Data, []byte(e.was), []byte(e.is))
	}
	scripts, err := compose.Parse(files)
	require.NoError(t, err)
	return scripts.Library()
}
