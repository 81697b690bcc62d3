package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// callgrind counts the instructions of a process that runs under it.
type callgrind struct {
	pid int
	dir string // where it writes
}

// dumps is the beginning of the names of the files that callgrind writes.
const dumps = "dump"

func (c callgrind) zero(ctx context.Context) error { return c.control(ctx, "--zero") }

func (c callgrind) total(ctx context.Context) (float64, error) {
	if err := c.control(ctx, "--dump"); err != nil {
		return 0, err
	}
	files, err := filepath.Glob(filepath.Join(c.dir, dumps+".*"))
	if err == nil && len(files) != 1 {
		err = fmt.Errorf("callgrind has written %d dumps", len(files))
	}
	if err != nil {
		return 0, err
	}
	file, err := os.Open(files[0])
	if err != nil {
		return 0, err
	}
	total, err := parseDump(file)
	return total, errors.Join(err, file.Close(), os.Remove(files[0]))
}

// control tells callgrind something, and returns when that is done.
func (c callgrind) control(ctx context.Context, what string) error {
	out, err := exec.CommandContext(ctx, "callgrind_control", what, strconv.Itoa(c.pid)).CombinedOutput()
	if err == nil && !bytes.Contains(out, []byte("OK")) {
		err = errors.New("it does not say OK")
	}
	if err != nil {
		return fmt.Errorf("callgrind_control %s: %w\n%s", what, err, out)
	}
	return nil
}

// housekeeping is the function of the server that follows the clock and is no part of a call.
const housekeeping = "serverCron"

// parseDump returns how many instructions one dump of callgrind has, but for those of the
// housekeeping.
//
// A dump calls functions by numbers, as in "fn=(7) main". The name is only there the first
// time. "cfn=(8)" is a function that is called: a line "calls=..." follows, and then a line
// whose second number are the instructions of these calls, with all that they call.
func parseDump(dump io.Reader) (float64, error) {
	lines := bufio.NewScanner(dump)
	total, kept := -1.0, 0.0
	keeper, called := "none", ""
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), "=")
		number, name, _ := strings.Cut(value, " ")
		var err error
		switch {
		case strings.HasPrefix(key, "totals:"):
			_, err = fmt.Sscanf(key, "totals: %g", &total)
		case key == "fn", key == "cfn":
			if name == housekeeping {
				keeper = number
			}
			called = number
		case key == "calls" && called == keeper && lines.Scan():
			var position string
			var cost float64
			_, err = fmt.Sscan(lines.Text(), &position, &cost)
			kept += cost
		}
		if err != nil {
			return 0, fmt.Errorf("callgrind's dump, %q: %w", lines.Text(), err)
		}
	}
	if err := lines.Err(); err != nil || total < 0 {
		return 0, errors.Join(errors.New("callgrind's dump has no totals"), err)
	}
	return total - kept, nil
}
