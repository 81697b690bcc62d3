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
		{"lib/record.lua", "local node = string.sub(text, at, at + size - 1)\n  local phase, zombie, ticket, fence,", "local node = string.sub(text, at, at + size - 1)\n  local phase, zombie, fence, ticket,"},
		{"lib/pack.lua", `"%d:%s%s%s %d %s %d %d "`, `"%d:%s%s%s %s %d %d %d "`},
		{"lib/pack.lua", "r.ticket, r.fence,", "r.fence, r.ticket,"},
		{"lib/plaingrant.lua", `ticket .. " " .. fence`, `fence .. " " .. ticket`},
		{"lib/plainrelease.lua", `"^[gh] %d+ (%d+) %d+ `, `"^[gh] (%d+) %d+ %d+ `},
		{"lib/plainrenew.lua", `"^h %d+ (%d+) %d+ `, `"^h (%d+) %d+ %d+ `},
		{"lib/plainhandoff.lua", `"^w (%d+) %d+ %d+ `, `"^w %d+ (%d+) %d+ `},
		{"lib/plainhandoff.lua", `ticket .. " " .. fence`, `fence .. " " .. ticket`},
	}},
	"a record's phase has another letter": {"semaphore/renew, detach, force", []edit{
		{"lib/pack.lua", "r.node, r.phase,", `r.node, r.phase == "d" and "D" or r.phase,`},
		{"lib/record.lua", "  return {\n", "  phase = phase == \"D\" and \"d\" or phase\n  return {\n"},
	}},
	"the sum of what is held and the count of endless holds change places": {"semaphore/hand on in order", []edit{
		{"lib/load.lua", "cap, used, waiting, gone, forever, keep = string.match", "cap, forever, waiting, gone, used, keep = string.match"},
		{"lib/save.lua", "st.cap, st.used, st.waiting, st.gone, st.forever, st.keep", "st.cap, st.forever, st.waiting, st.gone, st.used, st.keep"},
		{"lib/plaingrant.lua", `"^(%d+) (%d+) 0 0 0 0$"`, `"^(%d+) 0 0 0 (%d+) 0$"`},
		{"lib/plaingrant.lua", `cap .. " " .. after .. " 0 0 0 0"`, `cap .. " 0 0 0 " .. after .. " 0"`},
		{"lib/plainrelease.lua", `local cap, used, waiting = string.match(v[2] or "", "^(%d+) (%d+) (%d+) 0 0 0$")`, `local cap, waiting, used = string.match(v[2] or "", "^(%d+) 0 (%d+) 0 (%d+) 0$")`},
		{"lib/plainrelease.lua", `cap .. " " .. left .. " 0 0 0 0"`, `cap .. " 0 0 0 " .. left .. " 0"`},
		{"lib/plainhandoff.lua", `p.cap .. " " .. p.cap .. " " .. p.waiting .. " 0 0 0"`, `p.cap .. " 0 " .. p.waiting .. " 0 " .. p.cap .. " 0"`},
	}},
	"the count of those who wait and that of tombstones change places": {"lock/hand on in order", []edit{
		{"lib/load.lua", "cap, used, waiting, gone, forever, keep = string.match", "cap, used, gone, waiting, forever, keep = string.match"},
		{"lib/save.lua", "st.cap, st.used, st.waiting, st.gone, st.forever, st.keep", "st.cap, st.used, st.gone, st.waiting, st.forever, st.keep"},
		{"lib/plainrelease.lua", `"^(%d+) (%d+) (%d+) 0 0 0$"`, `"^(%d+) (%d+) 0 (%d+) 0 0$"`},
		{"lib/plainhandoff.lua", `p.cap .. " " .. p.cap .. " " .. p.waiting .. " 0 0 0"`, `p.cap .. " " .. p.cap .. " 0 " .. p.waiting .. " 0 0"`},
	}},
	"the counts have another name": {"pool/forget and restore", []edit{
		{"lib/fetch.lua", `"counts"`, `"sums"`},
		{"lib/save.lua", `"counts"`, `"sums"`},
		{"lib/plaingrant.lua", `"counts"`, `"sums"`},
		{"lib/plainrelease.lua", `"counts"`, `"sums"`},
		{"lib/plainhandoff.lua", `"counts"`, `"sums"`},
	}},
	"the last fence has another name": {"pool/hand on in order", []edit{
		{"lib/fetch.lua", `"fence"`, `"last"`},
		{"lib/save.lua", `"fence"`, `"last"`},
		{"lib/plaingrant.lua", `"fence"`, `"last"`},
		{"lib/plainhandoff.lua", `"fence"`, `"last"`},
	}},
	"places are reckoned from elsewhere": {"semaphore/hand on in order", []edit{
		{"lib/bands.lua", "queue = 2 * band_width,", "queue = 3 * band_width,"},
	}},
	"liveness is reckoned from elsewhere": {"lock/hand on in order", []edit{
		{"lib/bands.lua", "alive = band_width,", "alive = band_width / 2,"},
	}},
	"places are numbered the other way": {"pool/hand on in order", []edit{
		{"lib/place.lua", "127 - ", "128 - "},
	}},
	"two words of a lock's stem change places": {"lock/enter once more", []edit{
		{"lib/stem.lua", "own = tonumber(w[8]), deadline = tonumber(w[9])", "own = tonumber(w[9]), deadline = tonumber(w[8])"},
		{"lib/stemtext.lua", "int(s.own), int(s.deadline)", "int(s.deadline), int(s.own)"},
	}},
	"two words of a lock's entry change places": {"lock/enter once more", []edit{
		{"lib/stem.lua", "ext = tonumber(w[i + 2]), at = tonumber(w[i + 3])", "at = tonumber(w[i + 2]), ext = tonumber(w[i + 3])"},
		{"lib/stemtext.lua", "e.claim, e.kind, e.ext, e.at", "e.claim, e.kind, e.at, e.ext"},
	}},
	"two words of a node change places": {"lock/watch in a swarm", []edit{
		{"lib/member.lua", "local run, ends, limit, label", "local run, limit, ends, label"},
		{"lib/condemn.lua", `int(ends) .. " " .. m.limit`, `m.limit .. " " .. int(ends)`},
		{"swarm_probe.lua", `run .. " 0 " .. ARGV[4]`, `run .. " " .. ARGV[4] .. " 0"`},
	}},
	"two words of a resource change places": {"pool/rest, bind, replace", []edit{
		{"lib/item.lua", "local max, expiry, ends, pend, gen,", "local max, ends, expiry, pend, gen,"},
		{"lib/itemtext.lua", "int(i.expiry), int(i.ends)", "int(i.ends), int(i.expiry)"},
	}},
	"a resource leaves by another digit": {"pool/rest, bind, replace", []edit{
		{"lib/item.lua", `leaving = leaving == "1"`, `leaving = leaving == "2"`},
		{"lib/itemtext.lua", "i.leaving and 1 or 0", "i.leaving and 2 or 0"},
	}},
	"free resources are linked the other way": {"pool/hand on in order", []edit{
		{"lib/push.lua", `"n"`, `"N"`},
		{"lib/unlink.lua", `"n"`, `"N"`},
		{"lib/pick.lua", `"n"`, `"N"`},
		{"lib/poolfresh.lua", `"n"`, `"N"`},
		{"pool_inspect.lua", `"n"`, `"N"`},
	}},
	"what a claim holds has another name": {"pool/hand on in order", []edit{
		{"lib/give.lua", `"r:"`, `"R:"`},
		{"lib/giveback.lua", `"r:"`, `"R:"`},
		{"lib/pool.lua", `"r:"`, `"R:"`},
		{"lib/reclaim.lua", `"r:"`, `"R:"`},
		{"pool_acquire.lua", `"r:"`, `"R:"`},
		{"pool_swap.lua", `"r:"`, `"R:"`},
		{"pool_renew.lua", `"r:"`, `"R:"`},
		{"pool_restore.lua", `"r:"`, `"R:"`},
		{"pool_inspect.lua", `"r:"`, `"R:"`},
		{"claim_holders.lua", `"r:"`, `"R:"`},
	}},
	"two words of a binding change places": {"pool/hand on in order", []edit{
		{"lib/bind.lua", `int(ends) .. " " .. key`, `key .. " " .. int(ends)`},
		{"lib/bound.lua", "local ends, key", "local key, ends"},
		{"lib/bound.lua", `"^(%d+) (.*)$"`, `"^(.*) (%d+)$"`},
		{"pool_inspect.lua", `"^%d+"`, `"%d+$"`},
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
