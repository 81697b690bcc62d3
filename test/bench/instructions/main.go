// Command instructions counts the instructions that a server runs for single steps of
// Berth, under callgrind. The counts are nearly the same in every run, which times are not.
//
// Each step calls the library, so that it stays the same when scripts and their arguments
// change. The lists of steps are in lock.go, semaphore.go, pool.go and peer.go, which has those of
// others; they say what one cycle of a step does, and how many scripts that is. A run marks a step with another number of
// scripts: either it has counted something else too, or the step has become another one.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "instructions:", err)
		os.Exit(1)
	}
}

// options are the program's flags.
type options struct {
	rounds               int
	only, json, markdown string
	baseline, revision   string
	strict, write        bool
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("instructions", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&o.rounds, "rounds", 1, "measure everything this `often`, each time on a new server")
	flags.StringVar(&o.only, "only", "", "measure only steps whose names begin with one of this `list` (by commas)")
	flags.StringVar(&o.json, "json", "", "write everything to this `file` as JSON")
	flags.StringVar(&o.markdown, "markdown", "", "write the steps that have budgets to this `file` as Markdown")
	flags.StringVar(&o.baseline, "baseline", "baseline.json", "compare with this `file`")
	flags.BoolVar(&o.strict, "strict", false, "a step above its baseline by more than 2 %, or not as expected, is an error")
	flags.BoolVar(&o.write, "write", false, "make what was measured the baseline")
	flags.StringVar(&o.revision, "revision", "", "the `commit` that is measured, for the files")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	if flags.NArg() > 0 {
		return options{}, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if o.rounds < 1 {
		return options{}, errors.New("-rounds must be above 0")
	}
	return o, nil
}

// allSteps are the steps in the order of the table.
func allSteps() []step {
	return slices.Concat(lockSteps(), semaphoreSteps(), poolSteps(), peerSteps())
}

// run is the whole program.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	steps, err := choose(allSteps(), o.only)
	if err != nil {
		return err
	}
	before, err := readBaseline(o.baseline)
	if err != nil {
		return err
	}
	found, err := measure(ctx, steps, o.rounds, stderr)
	if err == nil && !o.write {
		err = found.again(before, func(these []int) error { return found.round(ctx, steps, these, "once more", stderr) })
	}
	if err != nil {
		return err
	}
	found.Revision = o.revision
	wrong := found.compare(before)
	errs := []error{found.text(stdout)}
	if o.json != "" {
		errs = append(errs, writeJSON(o.json, found))
	}
	if o.markdown != "" {
		errs = append(errs, os.WriteFile(o.markdown, []byte(found.page()), 0o644))
	}
	switch disturbed := found.disturbed(); {
	case o.write && len(disturbed) > 0:
		errs = append(errs, fmt.Errorf("the baseline stays as it is:\n%s", strings.Join(disturbed, "\n")))
	case o.write:
		before.update(found, allSteps())
		errs = append(errs, writeJSON(o.baseline, before))
	case o.strict && len(wrong) > 0:
		errs = append(errs, fmt.Errorf("not as it should be:\n%s", strings.Join(wrong, "\n")))
	case len(wrong) > 0:
		fmt.Fprintf(stdout, "\n%s\n", strings.Join(wrong, "\n"))
	}
	return errors.Join(errs...)
}

// choose returns the steps whose names begin with one of a list.
func choose(steps []step, only string) ([]step, error) {
	var chosen []step
	for _, s := range steps {
		for prefix := range strings.SplitSeq(only, ",") {
			if strings.HasPrefix(s.name, strings.TrimSpace(prefix)) {
				chosen = append(chosen, s)
				break
			}
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no step's name begins with any of %q", only)
	}
	return chosen, nil
}

// measure measures every step in every round.
func measure(ctx context.Context, steps []step, rounds int, stderr io.Writer) (result, error) {
	r := result{Date: time.Now().UTC().Format(time.RFC3339), Rounds: rounds}
	version, err := exec.CommandContext(ctx, "valgrind", "--version").Output()
	if err != nil {
		return r, fmt.Errorf("valgrind --version: %w", err)
	}
	r.Valgrind = strings.TrimPrefix(strings.TrimSpace(string(version)), "valgrind-")
	for _, s := range steps {
		r.Steps = append(r.Steps, found{Step: s.name, Does: s.does, Expected: s.scripts, Budget: s.budget})
	}
	all := make([]int, len(steps))
	for i := range all {
		all[i] = i
	}
	for round := range rounds {
		if err := r.round(ctx, steps, all, fmt.Sprintf("round %d of %d", round+1, rounds), stderr); err != nil {
			return r, err
		}
	}
	return r, nil
}

// round measures these of the steps once, on a server of their own.
func (r *result) round(ctx context.Context, steps []step, these []int, which string, stderr io.Writer) (err error) {
	m, err := startMachine(context.WithoutCancel(ctx)) // what is interrupted gives back what it holds
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	if r.Server, err = m.name(ctx); err != nil {
		return err
	}
	for _, i := range these {
		s := steps[i]
		fmt.Fprintf(stderr, "%s: %s\n", which, s.name)
		p := probe{machine: m, ctx: ctx, step: s}
		instructions, scripts, err := p.measure()
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		if p.odd != nil {
			fmt.Fprintf(stderr, "%s: the nodes have called %v\n", s.name, p.odd)
		}
		r.Steps[i].add(math.Round(instructions/100)/10, scripts)
	}
	return nil
}

func writeJSON(file string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}
