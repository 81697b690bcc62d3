package main

import (
	"syscall"
	"testing"
)

func TestTheCommandDoesNotOutliveBerth(t *testing.T) {
	t.Parallel()
	r := begin(t, server(t).URL(), "stubborn")
	r.signal(syscall.SIGKILL)
	r.silent() // its output ends when it has
}
