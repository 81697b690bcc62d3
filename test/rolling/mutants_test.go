package rolling

import (
	"bytes"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/scripts"
)

// edit replaces text in a file of scripts, everywhere in it.
type edit struct{ file, was, is string }

// mutants are changes of the format that keep a release whole by itself and break it
// beside another one, whose number they forgot to raise.
var mutants = map[string]struct {
	by    string // the play that they must fail: primitive/about
	edits []edit
}{
	"two words of a record change places": {"lock/enter once more", []edit{
		{"state/record.lua", "local phase, zombie, ticket, fence,", "local phase, zombie, fence, ticket,"},
		{"state/record.lua", `"%d:%s%s%s %d %s %d %d "`, `"%d:%s%s%s %s %d %d %d "`},
		{"state/record.lua", "r.ticket, r.fence,", "r.fence, r.ticket,"},
		{"state/record.lua", `"^[gh] %d+ (%d+) %d+ `, `"^[gh] (%d+) %d+ %d+ `},
		{"state/record.lua", `"^h %d+ (%d+) %d+ `, `"^h (%d+) %d+ %d+ `},
		{"state/record.lua", `"^w (%d+) %d+ %d+ `, `"^w %d+ (%d+) %d+ `},
		{"quick/grant.lua", "node, ticket, fence, ticket)", "node, fence, ticket, ticket)"},
		{"quick/handoff.lua", "record_heir_form, ticket, fence,", "record_heir_form, fence, ticket,"},
	}},
	"a record's phase has another letter": {"semaphore/renew, detach, force", []edit{
		{"state/record.lua", "r.node, r.phase,", `r.node, r.phase == "d" and "D" or r.phase,`},
		{"state/record.lua", "node = node, phase = phase,", `node = node, phase = phase == "D" and "d" or phase,`},
	}},
	"the sum of what is held and the count of endless holds change places": {"semaphore/hand on in order", []edit{
		{"state/load.lua", "cap, used, waiting, gone, forever, keep = ", "cap, forever, waiting, gone, used, keep = "},
		{"state/save.lua", "st.cap, st.used, st.waiting, st.gone, st.forever, st.keep", "st.cap, st.forever, st.waiting, st.gone, st.used, st.keep"},
		{"state/counts.lua", `"^(%d+) (%d+) 0 0 0 0$"`, `"^(%d+) 0 0 0 (%d+) 0$"`},
		{"state/counts.lua", `"%s %d 0 0 0 0"`, `"%s 0 0 0 %d 0"`},
		{"state/counts.lua", `"^(%d+) (%d+) (%d+) 0 0 0$"`, `"^(%d+) 0 (%d+) 0 (%d+) 0$"`},
		{"quick/release.lua", "local cap, used, waiting = string.match", "local cap, waiting, used = string.match"},
		{"state/counts.lua", `"%s %s %d 0 0 0"`, `"%s 0 %d 0 %s 0"`},
		{"quick/handoff.lua", "counts_line_form, p.cap, p.cap, p.waiting", "counts_line_form, p.cap, p.waiting, p.cap"},
	}},
	"the count of those who wait and that of tombstones change places": {"lock/hand on in order", []edit{
		{"state/load.lua", "cap, used, waiting, gone, forever, keep = ", "cap, used, gone, waiting, forever, keep = "},
		{"state/save.lua", "st.cap, st.used, st.waiting, st.gone, st.forever, st.keep", "st.cap, st.used, st.gone, st.waiting, st.forever, st.keep"},
		{"state/counts.lua", `"^(%d+) (%d+) (%d+) 0 0 0$"`, `"^(%d+) (%d+) 0 (%d+) 0 0$"`},
		{"state/counts.lua", `"%s %s %d 0 0 0"`, `"%s %s 0 %d 0 0"`},
	}},
	"the counts have another name": {"pool/forget and restore", []edit{
		{"state/fetch.lua", `"counts"`, `"sums"`},
		{"state/save.lua", `"counts"`, `"sums"`},
		{"quick/grant.lua", `"counts"`, `"sums"`},
		{"quick/release.lua", `"counts"`, `"sums"`},
		{"quick/handoff.lua", `"counts"`, `"sums"`},
	}},
	"the last fence has another name": {"pool/hand on in order", []edit{
		{"state/fetch.lua", `"fence"`, `"last"`},
		{"state/save.lua", `"fence"`, `"last"`},
		{"quick/grant.lua", `"fence"`, `"last"`},
		{"quick/handoff.lua", `"fence"`, `"last"`},
	}},
	"places are reckoned from elsewhere": {"semaphore/hand on in order", []edit{
		{"state/band.lua", "band_queue = 2 * ", "band_queue = 3 * "},
	}},
	"liveness is reckoned from elsewhere": {"lock/hand on in order", []edit{
		{"state/band.lua", "band_alive = 17592186044416", "band_alive = 8796093022208"},
	}},
	"places are numbered the other way": {"pool/hand on in order", []edit{
		{"state/band.lua", "127 - ", "128 - "},
	}},
	"two words of a lock's stem change places": {"lock/enter once more", []edit{
		{"owner/stem.lua", "own = tonumber(w[8]), deadline = tonumber(w[9])", "own = tonumber(w[9]), deadline = tonumber(w[8])"},
		{"owner/stem.lua", "int(s.own), int(s.deadline)", "int(s.deadline), int(s.own)"},
	}},
	"two words of a lock's entry change places": {"lock/enter once more", []edit{
		{"owner/stem.lua", "tonumber(w[i + 2]), tonumber(w[i + 3])", "tonumber(w[i + 3]), tonumber(w[i + 2])"},
		{"owner/stem.lua", "e.claim, e.kind, e.ext, e.at", "e.claim, e.kind, e.at, e.ext"},
	}},
	"two words of a node change places": {"lock/watch in a swarm", []edit{
		{"swarm/member.lua", "local run, ends, limit, label", "local run, limit, ends, label"},
		{"swarm/member.lua", `ends .. " " .. limit`, `limit .. " " .. ends`},
	}},
	"two words of a resource change places": {"pool/rest, bind, replace", []edit{
		{"pool/item.lua", "local max, expiry, ends, pend, gen,", "local max, ends, expiry, pend, gen,"},
		{"pool/item.lua", "int(i.expiry), int(i.ends)", "int(i.ends), int(i.expiry)"},
	}},
	"a resource leaves by another digit": {"pool/rest, bind, replace", []edit{
		{"pool/item.lua", `leaving = leaving == "1"`, `leaving = leaving == "2"`},
		{"pool/item.lua", "i.leaving and 1 or 0", "i.leaving and 2 or 0"},
	}},
	"free resources are linked the other way": {"pool/hand on in order", []edit{
		{"pool/list.lua", `"n"`, `"N"`},
		{"pool/pick.lua", `"n"`, `"N"`},
		{"pool/open.lua", `"n"`, `"N"`},
		{"pool_inspect.lua", `"n"`, `"N"`},
	}},
	"what a claim holds has another name": {"pool/hand on in order", []edit{
		{"pool/open.lua", `"r:"`, `"R:"`},
		{"pool/holding.lua", `"r:"`, `"R:"`},
		{"pool/giveback.lua", `"r:"`, `"R:"`},
		{"pool_swap.lua", `"r:"`, `"R:"`},
		{"pool_inspect.lua", `"r:"`, `"R:"`},
		{"claim_holders.lua", `"r:"`, `"R:"`},
	}},
	"two words of a binding change places": {"pool/hand on in order", []edit{
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
			primitive, about, _ := strings.Cut(mutant.by, "/")
			play, changed := plays[primitive][about], mutated(t, mutant.edits)
			require.NotNil(t, play, mutant.by)
			require.Empty(t, perform(t, changed, changed, play), "beside itself")
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
	files := fstest.MapFS{}
	require.NoError(t, fs.WalkDir(scripts.FS, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := scripts.FS.ReadFile(path)
		files[path] = &fstest.MapFile{Data: text}
		return err
	}))
	for _, e := range edits {
		file := files[e.file]
		require.NotNil(t, file, e.file)
		require.Contains(t, string(file.Data), e.was, e.file)
		file.Data = bytes.ReplaceAll(file.Data, []byte(e.was), []byte(e.is))
	}
	library, err := scriptkit.Parse(files)
	require.NoError(t, err)
	return library
}
