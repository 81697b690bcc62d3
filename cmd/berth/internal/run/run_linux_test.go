package run

import (
	"syscall"
	"testing"

	"github.com/berth-go/berth/cmd/berth/internal/apptest"
)

func TestTheCommandDoesNotOutliveBerth(t *testing.T) {
	t.Parallel()
	r := begin(t, apptest.Server(t).URL(), "stubborn")
	r.signal(syscall.SIGKILL)
	r.silent() // its output ends when it has
}
