package lock

import (
	"fmt"
	"strconv"
	"time"

	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/pkg/keyspace"
)

type extendDocument struct {
	Fence int64         `json:"fence"`
	By    time.Duration `json:"byMs"`
	Left  time.Duration `json:"leftMs"`
}

func printLock(a *app.App, s *shown, most int) error {
	if l := s.Lock; l != nil && l.Reentries > 0 {
		fmt.Fprintf(a.Out, "re-entered %s", often(l.Reentries))
		if l.Extended > 0 {
			fmt.Fprintf(a.Out, ", extended by %s", text.Human(l.Extended))
		}
		fmt.Fprintln(a.Out)
	}
	err := a.PrintClaims(keyspace.Lock, s.Name.Name, s.HeldBy, s.Waiters, most)
	if err == nil && s.Once != nil {
		_, err = fmt.Fprintf(a.Out, "\nOnce in each period\n%s\n", s.runs.Says())
	}
	return err
}

func often(n int) string {
	if n == 1 {
		return "once"
	}
	return strconv.Itoa(n) + " times"
}
