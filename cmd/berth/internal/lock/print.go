package lock

import (
	"cmp"
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
	return cmp.Or(a.PrintClaims(keyspace.Lock, s.Name.Name, s.HeldBy, s.Waiters, most), s.printRuns(a))
}

func often(n int) string {
	if n == 1 {
		return "once"
	}
	return strconv.Itoa(n) + " times"
}
