package rolling

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/tools/compose"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/scripts"
)

const (
	sumsFile = "SHA256SUMS"
	// unreleased is the version under which the scripts of today are kept for the tests
	// while no version has been released. It comes before all versions.
	unreleased = "v0.0.0"
)

// keptIn has a folder for each version: testdata, or, while no version has been
// released, a temporary folder. TestMain sets it.
var keptIn = "testdata"

// keepToday keeps the scripts of today in a new temporary folder.
func keepToday() error {
	dir, err := os.MkdirTemp("", "berth-kept")
	if err != nil {
		return err
	}
	keptIn = dir
	return keepScripts(dir, unreleased)
}

// keepScripts runs what a release runs.
func keepScripts(dir, version string) error {
	out, err := exec.Command("make", "-C", "../..", "keep-scripts", "KEPT="+dir, "VERSION="+version).CombinedOutput()
	if err != nil {
		return fmt.Errorf("make keep-scripts: %w\n%s", err, out)
	}
	return nil
}

// versions are the versions that have a folder in dir.
func versions(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var all []string
	for _, entry := range entries {
		if !entry.IsDir() || !versionName.MatchString(entry.Name()) {
			return nil, fmt.Errorf("%s/%s is no folder of a version", dir, entry.Name())
		}
		all = append(all, entry.Name())
	}
	slices.SortFunc(all, olderFirst)
	return all, nil
}

// release is the scripts of a version.
type release struct {
	version string
	scripts compose.Scripts
	library *scriptkit.Library // of the same
}

func releaseOf(version string, scripts compose.Scripts) release {
	return release{version, scripts, scripts.Library()}
}

// today is what would be released next.
var today = releaseOf("today", compose.MustParse(scripts.FS))

var versionName = regexp.MustCompile(`^v(\d+)\.(\d+)\.(\d+)(-[0-9a-z.]+)?$`)

// kept are the releases whose scripts are kept, the oldest first.
var kept = sync.OnceValues(func() ([]release, error) {
	names, err := versions(keptIn)
	if err != nil {
		return nil, err
	}
	all := make([]release, len(names))
	for i, version := range names {
		scripts, err := compose.Parse(os.DirFS(filepath.Join(keptIn, version)))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", version, err)
		}
		all[i] = releaseOf(version, scripts)
	}
	return all, nil
})

// olderFirst compares versions: v1.2.3-rc.1 comes before v1.2.3.
func olderFirst(a, b string) int {
	as, bs := versionName.FindStringSubmatch(a), versionName.FindStringSubmatch(b)
	for i := 1; i <= 3; i++ {
		x, _ := strconv.Atoi(as[i]) // the pattern lets only digits through
		y, _ := strconv.Atoi(bs[i])
		if x != y {
			return cmp.Compare(x, y)
		}
	}
	if (as[4] == "") != (bs[4] == "") {
		return cmp.Compare(len(bs[4]), len(as[4]))
	}
	return cmp.Compare(as[4], bs[4])
}

// releases are all that are kept, and today.
func releases(t testing.TB) []release {
	t.Helper()
	all, err := kept()
	require.NoError(t, err)
	require.NotEmpty(t, all, "at least one release is kept")
	return append(slices.Clone(all), today)
}

// formatOf is the format number that a release writes.
func formatOf(t *testing.T, r release) (number string) {
	t.Helper()
	require.Empty(t, perform(t, r.library, nil, func(w *world, a, _ *process) {
		_, err := a.sem.TryAcquire(bg, nil) // its capacity is not that of a thin name
		w.ok(err)
		values, err := w.redis.Do(bg, w.redis.B().Hget().Key("berth:sem:{"+name+"}:state").Field("v").Build()).ToString()
		w.ok(err)
		number, _, _ = strings.Cut(values, " ")
	}))
	return number
}

// previous is the latest release that is kept. It runs beside today's if both have
// one format and every script takes and answers the same, so that the Go code of today
// can run the kept ones.
func previous(t *testing.T) release {
	t.Helper()
	all := releases(t)
	r := all[len(all)-2]
	require.Equal(t, formatOf(t, r), formatOf(t, today), "releases of two formats do not run side by side")
	require.Empty(t, differences(r.scripts, today.scripts),
		"the Go code of today cannot run these scripts of %s: the tests need a way to translate its calls", r.version)
	return r
}

// differences are the scripts that take or answer something else than those of
// another release.
func differences(a, b compose.Scripts) (names []string) {
	shape := func(s *compose.Script) string {
		h := s.Declares
		return fmt.Sprint(h.Keys, h.Args, h.Group, h.GroupStart, h.Returns)
	}
	for _, s := range a {
		for _, other := range b {
			if other.Name == s.Name && shape(other) != shape(s) {
				names = append(names, s.Name)
			}
		}
	}
	return names
}

// find is a script by its name, nil if the release has none.
func find(l *scriptkit.Library, name string) *scriptkit.Script {
	for _, s := range l.Scripts() {
		if s.Name == name {
			return s
		}
	}
	return nil
}

func TestWhatIsKeptOfAReleaseStaysAsItWas(t *testing.T) {
	t.Parallel()
	for _, r := range releases(t) {
		if r.version == today.version {
			continue
		}
		require.NoError(t, checkSums(os.DirFS(filepath.Join(keptIn, r.version))), r.version)
	}
}

// checkSums compares a folder with its list of checksums.
func checkSums(dir fs.FS) error {
	var sums strings.Builder
	err := fs.WalkDir(dir, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path == sumsFile {
			return err
		}
		text, err := fs.ReadFile(dir, path)
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(text), path)
		return err
	})
	if err != nil {
		return err
	}
	want, err := fs.ReadFile(dir, sumsFile)
	if err != nil {
		return err
	}
	if sums.String() != string(want) {
		return fmt.Errorf("the files are not those of %s: what is kept of a release never changes", sumsFile)
	}
	return nil
}

func TestWhatIsKeptIsNeverWrittenAnew(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, keepScripts(dir, "v1.2.3"))
	require.ErrorContains(t, keepScripts(dir, "v1.2.3"), "is there already")
	require.ErrorContains(t, keepScripts(dir, "1.2.3"), "is no version")
	require.ErrorContains(t, keepScripts(dir, ""), "is no version")
	all, err := versions(dir)
	require.NoError(t, err)
	require.Equal(t, []string{"v1.2.3"}, all, "nothing else was written")
	whole := os.DirFS(filepath.Join(dir, "v1.2.3"))
	require.NoError(t, checkSums(whole))
	script, more := filepath.Join(dir, "v1.2.3", "semaphore_renew.lua"), filepath.Join(dir, "v1.2.3", "lock_new.lua")
	require.NoError(t, os.WriteFile(more, nil, 0o600))
	require.Error(t, checkSums(whole), "there is one more")
	require.NoError(t, os.Remove(more))
	text, err := os.ReadFile(script)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(script, bytes.Replace(text, []byte("local "), []byte("local  "), 1), 0o600))
	require.Error(t, checkSums(whole), "it was edited")
	require.NoError(t, os.Remove(script))
	require.Error(t, checkSums(whole), "it is missing")
}

func TestVersionsSortByAge(t *testing.T) {
	t.Parallel()
	all := []string{"v0.1.0-dev", "v0.1.0", "v0.2.0-rc.1", "v0.2.0", "v0.10.0", "v1.0.0"}
	mixed := []string{all[4], all[1], all[5], all[0], all[3], all[2]}
	slices.SortFunc(mixed, olderFirst)
	require.Equal(t, all, mixed)
}
