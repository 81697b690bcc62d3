package harness

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// clock is the wall clock of one server process. A library that is loaded into
// the process adds the offset, which both have mapped into memory.
type clock struct {
	library string
	file    string // in the process's folder
	page    []byte
	offset  *atomic.Int64 // in ns; lies in page
}

// newClock makes a clock, with its file in dir.
func newClock(dir string) (*clock, error) {
	library, err := clockLibrary()
	if err != nil {
		return nil, err
	}
	c := &clock{library: library, file: filepath.Join(dir, "clock")}
	f, err := os.OpenFile(c.file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if err := f.Truncate(8); err != nil {
		return nil, err
	}
	c.page, err = syscall.Mmap(int(f.Fd()), 0, 8, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	c.offset = (*atomic.Int64)(unsafe.Pointer(&c.page[0])) // a page is aligned
	return c, nil
}

func (c *clock) env() []string {
	return []string{"LD_PRELOAD=" + c.library, "BERTH_TEST_CLOCK=" + c.file}
}

func (c *clock) set(offset time.Duration) { c.offset.Store(int64(offset)) }

func (c *clock) remove() error {
	c.offset = nil
	return syscall.Munmap(c.page)
}

//go:embed testdata/clock.c
var clockSource []byte

// clockLibrary compiles the library, once for each user and source.
var clockLibrary = sync.OnceValues(func() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	dir := filepath.Join(cache, "berth-test")
	library := filepath.Join(dir, fmt.Sprintf("clock-%x.so", sha256.Sum256(clockSource)))
	if _, err := os.Stat(library); err == nil {
		return library, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return library, compileClock(dir, library)
})

// compileClock puts the whole library into its place at once: other test binaries
// may be at it too.
func compileClock(dir, library string) error {
	build, err := os.MkdirTemp(dir, "build-")
	if err != nil {
		return err
	}
	source, made := filepath.Join(build, "clock.c"), filepath.Join(build, "clock.so")
	if err = os.WriteFile(source, clockSource, 0o600); err == nil {
		err = compile(source, made)
	}
	if err == nil {
		err = os.Rename(made, library)
	}
	return errors.Join(err, os.RemoveAll(build))
}

func compile(source, made string) error {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	said, err := exec.CommandContext(ctx, "cc", "-std=gnu11", "-O2", "-shared", "-fPIC", "-o", made, source).CombinedOutput()
	if err != nil {
		return fmt.Errorf("compiling the clock: %w\n%s", err, said)
	}
	return nil
}
