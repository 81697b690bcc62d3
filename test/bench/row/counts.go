package row

import (
	"context"
	"fmt"
	"strings"
)

// Stat is what the server says of one command.
type Stat struct {
	Calls float64
	// Micros is the time that the server spent in it, in µs. A script's holds that of the
	// commands inside it.
	Micros float64
}

// Counts are the commands that a server has run, by name ("evalsha", "set"), those inside
// scripts among them.
type Counts map[string]Stat

// Counts reads what the server has run so far, but for the housekeeping of connections
// and of this program.
func (e *Env) Counts(ctx context.Context) (Counts, error) {
	text, err := e.Redis.Do(ctx, e.Redis.B().Info().Section("commandstats").Build()).ToString()
	if err != nil {
		return nil, fmt.Errorf("INFO commandstats: %w", err)
	}
	return parseCounts(text)
}

func parseCounts(text string) (Counts, error) {
	counts := Counts{}
	for line := range strings.Lines(text) {
		line, ok := strings.CutPrefix(line, "cmdstat_")
		if !ok {
			continue // a heading
		}
		name, values, _ := strings.Cut(line, ":")
		top, _, _ := strings.Cut(name, "|")
		switch top {
		case "info", "config", "client", "hello", "ping", "script", "select", "command", "cluster":
			continue
		}
		var s Stat
		if _, err := fmt.Sscanf(values, "calls=%f,usec=%f", &s.Calls, &s.Micros); err != nil {
			return nil, fmt.Errorf("INFO commandstats, %q: %w", line, err)
		}
		counts[name] = s
	}
	return counts, nil
}

// Since returns what was run between an earlier reading and this one.
func (c Counts) Since(before Counts) Counts {
	diff := Counts{}
	for name, s := range c {
		b := before[name]
		if s.Calls > b.Calls {
			diff[name] = Stat{Calls: s.Calls - b.Calls, Micros: s.Micros - b.Micros}
		}
	}
	return diff
}

var scripts = []string{"eval", "evalsha", "fcall"}

// Scripts is the number of scripts run.
func (c Counts) Scripts() float64 { return c.Of(scripts...).Calls }

// Commands is the number of commands run; a script is one, and each command in it another.
func (c Counts) Commands() float64 {
	n := 0.0
	for _, s := range c {
		n += s.Calls
	}
	return n
}

// Of sums up some commands.
func (c Counts) Of(names ...string) Stat {
	var sum Stat
	for _, name := range names {
		sum.Calls += c[name].Calls
		sum.Micros += c[name].Micros
	}
	return sum
}
