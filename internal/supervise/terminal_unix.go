//go:build unix

package supervise

import (
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
)

// terminal is one in whose foreground this process was when it started a
// command, and which the command's group was then given.
type terminal struct {
	fd  int
	own int // our own process group
}

// foregroundOf returns the terminal that a command can be given, nil where it
// cannot: its input and output must both be a terminal with our own group in
// the foreground. Where only one is, the other end of a pipe may want to read
// what is typed.
func foregroundOf(cmd *exec.Cmd) *terminal {
	own := unix.Getpgrp()
	for _, stream := range []any{cmd.Stdout, cmd.Stdin} {
		file, ok := stream.(*os.File)
		if !ok || file == nil || foreground(int(file.Fd())) != own {
			return nil
		}
	}
	return &terminal{fd: int(cmd.Stdin.(*os.File).Fd()), own: own}
}

// foreground is the process group in a terminal's foreground, 0 for what is no
// terminal of this session.
func foreground(fd int) int {
	group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	if err != nil {
		return 0
	}
	return group
}

// takeBack puts our own group into the foreground, if the given one is there.
func (t *terminal) takeBack(group int) { t.replace(group, t.own) }

// give puts the given group into the foreground, if our own is there.
func (t *terminal) give(group int) { t.replace(t.own, group) }

func (t *terminal) replace(from, to int) {
	if foreground(t.fd) == from {
		_ = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, to)
	}
}
