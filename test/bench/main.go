// Command bench measures Berth's budgets and what other Go libraries for locks over Redis
// do in the same place: every row on one server in one run, by turns, several times.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/test/bench/report"
	"github.com/berth-go/berth/test/bench/row"
	"github.com/berth-go/berth/test/bench/server"
)

func main() {
	row.RunChild()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options are the program's flags.
type options struct {
	rounds              int
	span                time.Duration
	only                string
	smoke, strict       bool
	json, svg, markdown string
	page                string
	addr                string
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&o.rounds, "rounds", 7, "measure everything this `often`")
	flags.DurationVar(&o.span, "for", time.Second, "`time` that one measurement takes, roughly")
	flags.StringVar(&o.only, "only", "", "measure only rows whose ids begin with one of this `list` (by commas)")
	flags.BoolVar(&o.smoke, "smoke", false, "run every row once, as small as can be: the numbers say nothing")
	flags.BoolVar(&o.strict, "strict", false, "a missed budget is an error")
	flags.StringVar(&o.json, "json", "", "write everything to this `file` as JSON")
	flags.StringVar(&o.svg, "svg", "", "write a picture to this `file`")
	flags.StringVar(&o.markdown, "markdown", "", "write the tables to this `file` as Markdown")
	flags.StringVar(&o.page, "page", "", "write what became of the budgets to this `file`, as docs/generated/benchmarks.md begins")
	flags.StringVar(&o.addr, "addr", "", "use the server at this `address` (default: start redis-server)")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	if flags.NArg() > 0 {
		return options{}, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if o.rounds < 1 || o.span <= 0 {
		return options{}, errors.New("-rounds and -for must be above 0")
	}
	if o.smoke {
		o.rounds, o.span = 1, 100*time.Millisecond
	}
	return o, nil
}

// run is the whole program. It reports on what it could measure even if something failed.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	rows, err := choose(row.All(), o.only)
	if err != nil {
		return err
	}
	own := o.addr == ""
	if own {
		// What is interrupted gives back what it holds.
		addr, stop, err := server.Start(context.WithoutCancel(ctx))
		if err != nil {
			return err
		}
		defer func() { _ = stop() }() // nothing on it is wanted any more
		o.addr = addr
	}
	redis, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{o.addr}, DisableCache: true})
	if err != nil {
		return fmt.Errorf("connect to %s: %w", o.addr, err)
	}
	defer redis.Close()
	machine, err := report.ThisMachine(ctx, redis)
	if err != nil {
		return err
	}
	result := report.Report{
		Machine: machine, Date: time.Now().UTC().Format(time.RFC3339), Rounds: o.rounds, For: o.span.String(),
	}
	var failures []error
	for _, r := range rows {
		if own { // what rows before it have left is nothing to this one
			if err := redis.Do(ctx, redis.B().Flushall().Build()).Error(); err != nil {
				return fmt.Errorf("empty the server: %w", err)
			}
		}
		env := row.NewEnv(redis, o.addr, row.Scale{For: o.span, Smoke: o.smoke})
		found, err := measure(ctx, r, env, o.rounds, stderr)
		env.Close()
		if err != nil {
			failures = append(failures, err)
		}
		if ctx.Err() != nil {
			return errors.Join(failures...)
		}
		result.Rows = append(result.Rows, report.NewRow(r, found))
	}
	if err := write(result, o, stdout, stderr); err != nil {
		failures = append(failures, err)
	}
	if missed := result.Missed(); o.strict && len(missed) > 0 {
		failures = append(failures, fmt.Errorf("missed budgets:\n%s", strings.Join(missed, "\n")))
	}
	return errors.Join(failures...)
}

// choose returns the rows whose ids begin with one of a list.
func choose(rows []row.Row, only string) ([]row.Row, error) {
	if only == "" {
		return rows, nil
	}
	var chosen []row.Row
	for _, r := range rows {
		for prefix := range strings.SplitSeq(only, ",") {
			if strings.HasPrefix(r.ID, strings.TrimSpace(prefix)) {
				chosen = append(chosen, r)
				break
			}
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no row's id begins with any of %q", only)
	}
	return chosen, nil
}

// measurementLimit ends a measurement that does not end by itself.
const measurementLimit = 5 * time.Minute

// measure measures all columns of a row in every round, in an order that moves on by one
// with each. A measurement that fails has no values in its round.
func measure(ctx context.Context, r row.Row, env *row.Env, rounds int, stderr io.Writer) (report.Found, error) {
	var columns []string
	for _, column := range r.Columns {
		if _, skipped := r.Skip[column]; !skipped {
			columns = append(columns, column)
		}
	}
	var failures []error
	one := func(round int, column string) map[string]float64 {
		fmt.Fprintf(stderr, "%s, round %d of %d: %s\n", r.ID, round, rounds, column)
		ctx, cancel := context.WithTimeout(ctx, measurementLimit)
		defer cancel()
		values, err := r.Measure(ctx, env, column)
		if err != nil {
			failures = append(failures, fmt.Errorf("%s, %s: %w", r.ID, column, err))
		}
		return values
	}
	if !r.Cold && !env.Smoke {
		span := env.For
		env.For = span / 10
		for _, column := range columns {
			one(0, column)
		}
		env.For = span
	}
	var found report.Found
	for round := range rounds {
		values := map[string]map[string]float64{}
		for i := range columns {
			if ctx.Err() != nil {
				return found, errors.Join(append(failures, ctx.Err())...)
			}
			column := columns[(round+i)%len(columns)]
			values[column] = one(round+1, column)
		}
		found = append(found, values)
	}
	return found, errors.Join(failures...)
}

// write writes the report to wherever it was asked for.
func write(r report.Report, o options, stdout, stderr io.Writer) error {
	errs := []error{r.Text(stdout)}
	for _, out := range []struct {
		file  string
		write func(io.Writer) error
	}{
		{o.json, func(w io.Writer) error {
			indented := json.NewEncoder(w)
			indented.SetIndent("", "  ")
			return indented.Encode(r)
		}},
		{o.svg, r.SVG},
		{o.markdown, r.Markdown},
		{o.page, r.Page},
	} {
		if out.file == "" {
			continue
		}
		err := writeFile(out.file, out.write)
		if err == nil {
			fmt.Fprintf(stderr, "wrote %s\n", out.file)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func writeFile(name string, write func(io.Writer) error) error {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}
