package torture

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/tools/compose"
	"github.com/berth-go/berth/scripts/composed"
	"github.com/berth-go/berth/test/harness"
)

// The variables by which a worker is told which mutant it plays, where the scripts are
// that are broken in it, and by how many ms its clock is off. Only the program of
// buildBroken reads them.
const (
	brokenEnv  = "BERTH_TORTURE_BROKEN"
	scriptsEnv = "BERTH_TORTURE_SCRIPTS"
	skewEnv    = "BERTH_TORTURE_SKEW"
)

// env tells worker n that it plays the mutant, whose scripts are in a folder.
func (m mutant) env(scripts string, n int) []string {
	skew := 0
	if m.skew != nil {
		skew = m.skew[n]
	}
	return []string{brokenEnv + "=" + m.name, scriptsEnv + "=" + scripts, skewEnv + "=" + strconv.Itoa(skew)}
}

// scripts writes the scripts that are broken in the mutant into a folder.
func (m mutant) scripts(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, source := range sourcesOf(t, m) {
		write(t, filepath.Join(dir, name+".lua"), source)
	}
	return dir
}

// ownTime has a script take the time from the last two arguments.
var ownTime = strings.NewReplacer(`redis.call("TIME")`, "{ table.remove(ARGV, #ARGV - 1), table.remove(ARGV) }")

// root is the library's module.
const root = "../.."

// replaced are the files of the library whose names end so, by their paths in it, with
// the changes of some mutants, all of them made.
func replaced(t *testing.T, ending string, some ...mutant) map[string]string {
	t.Helper()
	files, switched := map[string]string{}, regexp.MustCompile(`\bbroken\b`)
	for _, m := range some {
		for _, c := range m.broke {
			if !strings.HasSuffix(c.file, ending) {
				continue
			}
			if _, known := files[c.file]; !known {
				text, err := os.ReadFile(filepath.Join(root, c.file))
				require.NoError(t, err)
				files[c.file] = string(text)
			}
			require.Equal(t, 1, strings.Count(files[c.file], c.old), "%s has changed; this is no longer in it once:\n%s", c.file, c.old)
			now := c.now
			if path.Ext(c.file) == ".go" {
				now = switched.ReplaceAllLiteralString(now, fmt.Sprintf("broken(%q)", m.name))
			}
			files[c.file] = strings.Replace(files[c.file], c.old, now, 1)
		}
	}
	return files
}

// loader has the scripts of a folder take the place of those of the same names.
const loader = `package composed

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
)

func init() {
	dir := os.Getenv("` + scriptsEnv + `")
	for _, script := range Library().Scripts() {
		text, err := os.ReadFile(dir + "/" + script.Name + ".lua")
		if dir == "" || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			panic(err)
		}
		source, sum := string(text), sha1.Sum(text)
		script.File, script.Header, script.SHA = &source, 0, hex.EncodeToString(sum[:])
	}
}
`

// switches is what a package with a mutant in it gets besides, so that what is written
// into its files needs no imports.
const switches = `package %s

import (
	"os"
	"strconv"
	"time"
)

var played = os.Getenv("` + brokenEnv + `")

func broken(name string) bool { return played == name }

// ownClock is that of this process: the seconds, and the microseconds in them.
func ownClock() []string {
	skew, _ := strconv.Atoi(os.Getenv("` + skewEnv + `"))
	now := time.Now().Add(time.Duration(skew) * time.Millisecond)
	return []string{strconv.FormatInt(now.Unix(), 10), strconv.Itoa(now.Nanosecond() / 1000)}
}
`

// buildBroken builds the program of the workers with the Go code of all mutants in it,
// and none of them on. It has no race detector, which would slow down what is to be found.
func buildBroken(t *testing.T) string {
	t.Helper()
	files := replaced(t, ".go", mutants...)
	for _, file := range slices.Collect(maps.Keys(files)) {
		dir := path.Dir(file)
		files[dir+"/broken.go"] = fmt.Sprintf(switches, path.Base(dir))
	}
	files["scripts/composed/broken.go"] = loader
	dir := t.TempDir()
	over := map[string]string{}
	for file, text := range files {
		to, err := filepath.Abs(filepath.Join(root, file))
		require.NoError(t, err)
		over[to] = filepath.Join(dir, file)
		write(t, over[to], text)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": over})
	require.NoError(t, err)
	list := filepath.Join(dir, "overlay.json")
	write(t, list, string(overlay))
	program := filepath.Join(dir, "worker")
	out, err := exec.Command("go", "build", "-race=false", "-o", program, "-ldflags=-s -w "+harness.Strict, "-overlay", list, "./worker").CombinedOutput()
	require.NoError(t, err, "%s", out)
	text, err := os.ReadFile(filepath.Join(root, "internal/guard/guard.go"))
	require.NoError(t, err)
	require.Contains(t, string(text), "\nvar strict string\n", "of harness.Strict: a panic of a worker is to end it")
	return program
}

func write(t *testing.T, file, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
}

// Sooner than a build: whoever changes the library changes the mutants with it.
func TestEveryMutantFitsTheLibrary(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			require.NotEmpty(t, replaced(t, "", m))
			for _, c := range m.broke {
				require.NotEqual(t, c.old, c.now)
			}
			sources := sourcesOf(t, m)
			require.Equal(t, len(replaced(t, ".lua", m)) > 0 || m.skew != nil, len(sources) > 0)
			for name, source := range sources {
				require.False(t, m.skew != nil && strings.Contains(source, "\"TIME\""), "%s asks for the time in another way", name)
			}
		})
	}
}

// sourcesOf are the sources, by name, of those scripts that the mutant has in another form.
func sourcesOf(t *testing.T, m mutant) map[string]string {
	t.Helper()
	whole := composed.Library()
	all := whole
	if changed := replaced(t, ".lua", m); len(changed) > 0 {
		files := compose.Sources()
		for file, text := range changed {
			files[strings.TrimPrefix(file, "scripts/")].Data = []byte(text)
		}
		scripts, err := compose.Parse(files)
		require.NoError(t, err)
		all = scripts.Library()
	}
	sources := map[string]string{}
	for _, script := range all.Scripts() {
		source := script.Source()
		if m.skew != nil {
			source = ownTime.Replace(source)
		}
		if source != whole.Script(script.Name).Source() {
			sources[script.Name] = source
		}
	}
	return sources
}
