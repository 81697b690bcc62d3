package fast

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/tools/compose"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// tomorrow are the scripts of a release that knows a feature 4: a fat name uses it while it is kept
// with 2. Nothing but this test has ever heard of it.
func tomorrow(t *testing.T) *scriptkit.Library {
	t.Helper()
	edits := map[string][2]string{
		"state/feature.lua": {"local feature_newest = 3\n", "local feature_newest = 4\n"},
		"state/save.lua":    {"kind_save(at, st), feature_first -- the number", "kind_save(at, st), st.keep == 2 and 4 or feature_first -- the number"},
	}
	files := compose.Sources()
	for path, edit := range edits {
		text := string(files[path].Data)
		require.Equal(t, 1, strings.Count(text, edit[0]), path)
		files[path].Data = []byte(strings.Replace(text, edit[0], edit[1], 1))
	}
	return compose.MustParse(files).Library()
}

// A name's number is that of the newest feature that it uses: who does not know the feature
// refuses the name, and goes on with all others.
func TestANameIsRefusedByWhoDoesNotKnowItsNewestFeature(t *testing.T) {
	inWorld(t, "semaphore", func(t *testing.T, named func(name string) *world) {
		newer, w, other := tomorrow(t), named("uses"), named("does not")
		number := func(w *world) int64 { return w.value(t, "fmt") }
		resize := func(w *world, keep string) {
			reply := w.eval(t, newer, "semaphore_resize", w.state, w.line, []string{"2000", channel, "gpu", "3", keep, "1", latest, "n.keep" + keep})
			require.Equal(t, "resized", reply.([]any)[0])
		}
		for _, w := range []*world{w, other} {
			status, _ := w.acquire(t, w.plainly("n.1"))
			require.Equal(t, "granted", status)
		}
		resize(other, "1")
		require.Equal(t, int64(3), number(other), "the feature is known, and not used")
		resize(w, "2")
		require.Equal(t, int64(4), number(w))

		status, _ := w.acquire(t, w.plainly("n.2"))
		require.Equal(t, "incompatible", status)
		status, _ = other.acquire(t, w.plainly("n.2"))
		require.Equal(t, "granted", status, "all others go on")
		resize(w, "0")
		require.Equal(t, int64(3), number(w), "the feature is not used any more")
		status, _ = w.acquire(t, w.plainly("n.2"))
		require.Equal(t, "granted", status)
	})
}
