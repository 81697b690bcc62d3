package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// ways are what Berth does, by the course of a refusal.
var ways = map[scriptkit.Course]struct{ does, matches string }{
	scriptkit.Passes:           {"repeats the call", "`ErrUnavailable`"},
	scriptkit.PassesOnceServed: {"repeats the call, if the client was served before; else ends it", "`ErrUnavailable`, if the client was served before"},
	scriptkit.Final:            {"ends the call", "none"},
}

// refusalsPage has what servers answer, and what Berth makes of it.
func refusalsPage(refusals []scriptkit.Refusal) page {
	var b strings.Builder
	b.WriteString("A call that is repeated goes on as if nobody had answered: a wait keeps its place until it ends, a hold until its local deadline, " +
		"a release is sent in the background, a leader stands on, a run waits or goes on. Other calls are repeated for `Config.Retry`. " +
		"Their error then matches `ErrUnavailable`.\n\n" +
		"All other errors end the call. Redis and Valkey answer further words (BUSYKEY, EXECABORT, INPROG, NOTBUSY, UNBLOCKED, UNKILLABLE and more), " +
		"but not to what Berth sends. NOSCRIPT is answered by sending the script.\n\n" +
		"| the answer begins | it means | Berth | its error matches | seen on |\n|---|---|---|---|---|\n")
	for _, r := range refusals {
		way := ways[r.Course]
		if errors.Is(r.Is, berth.ErrIncompatible) {
			way.matches = "`ErrIncompatible`"
		}
		seen := strings.Join(r.Seen, ", ")
		if seen == "" {
			seen = "no server: by the sources"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", r.Begins, r.Means, way.does, way.matches, seen)
	}
	b.WriteString("\n`TestRefusalsAreThoseOfRealServers` has servers of Redis 7.0 and Valkey 8.0 answer each that is marked so.\n")
	return page{name: "refusals", title: "What servers refuse", text: b.String()}
}
