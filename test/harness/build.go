package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"sync"
)

// programs is the folder of what [Command] builds; [Main] removes it.
var programs string

// Command is the path of berth, which is built once for all tests of a package two folders below the repository's root: to
// link it takes as long as some of them.
var Command = sync.OnceValues(func() (path string, err error) {
	if programs, err = os.MkdirTemp("", "berth-programs-"); err != nil {
		return "", err
	}
	return Build("../..", "./cmd/berth", programs)
})

// Strict is what a program of Berth's tests is linked with: a panic that it would recover from ends it, and so fails the
// test.
const Strict = "-X=github.com/berth-go/berth/internal/guard.strict=1"

// Build builds a program of the module in a folder, into another folder, and returns its
// path. It has the race detector if the tests have it.
func Build(module, program, into string) (string, error) {
	path := filepath.Join(into, filepath.Base(program))
	args := []string{"-C", module, "build", "-o", path}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			if setting.Key == "-race" {
				args = append(args, "-race="+setting.Value)
			}
		}
	}
	args = append(args, "-ldflags="+Strict)
	said, err := exec.Command("go", append(args, program)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build %s: %w\n%s", program, err, said)
	}
	return path, nil
}
