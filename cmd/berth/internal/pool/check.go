package pool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/internal/settings"
	"github.com/berth-go/berth/internal/supervise"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe"
)

// checking are the flags of pool check.
type checking struct {
	command string
	workers int
	timeout time.Duration
	rest    time.Duration
}

func checkCommand(a *app.App) *cobra.Command {
	var c checking
	cmd := &cobra.Command{
		Use:   "check NAME --exec CMD",
		Short: "Check each free resource by a command, let what fails rest",
		Long: `Run a command by the shell for each free resource of a pool, and let a resource rest
for which it fails. The command finds the resource in BERTH_RESOURCE and the pool in
BERTH_NAME, and holds the resource while it runs. A command that ends with another
code than 0, or that has not ended within --timeout and is killed with all that it has
started, has failed; the reason of the rest is the code, and the last line that the
command wrote on stderr. Resources that are leased or rest, and those that somebody
waits for, are skipped.

Exit code 1: a resource has failed, or the pool has no resources.`,
		Example:           `  berth pool check proxies --exec 'curl -fsS --proxy "$BERTH_RESOURCE" https://example.com' --workers 8`,
		Args:              app.Arguments("NAME"),
		ValidArgsFunction: app.Completing(a.Names(keyspace.Pool)),
		RunE: a.Runs(func(cmd *cobra.Command, args []string) error {
			if err := cmp.Or(app.CheckName(args[0]), c.check()); err != nil {
				return err
			}
			return checkAll(cmd.Context(), a, args[0], c)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&c.command, "exec", "", "`CMD` for 'sh -c' (required)")
	flags.IntVar(&c.workers, "workers", 1, "how many commands run at once")
	app.TimeVar(flags, &c.timeout, "timeout", 30*time.Second, "how long one command may run")
	app.TimeVar(flags, &c.rest, "rest", time.Minute, "how long a resource rests that has failed, 0 for not at all")
	return cmd
}

func (c *checking) check() error {
	switch {
	case c.command == "":
		return app.Usage("--exec CMD is missing: what is run for each resource")
	case c.workers < 1:
		return berth.Invalid("--workers", "%d is not at least 1", c.workers)
	case c.timeout <= 0:
		return berth.Invalid("--timeout", "%s is not above 0", c.timeout)
	case c.rest < 0:
		return berth.Invalid("--rest", "%s is below 0; 0 is not at all", c.rest)
	}
	return settings.Duration("--rest", c.rest)
}

// failure is a resource that has failed its check.
type failure struct {
	Resource string `json:"resource"`
	Reason   string `json:"reason"`
}

// checkAll checks a pool. The findings are printed, even with an error.
func checkAll(ctx context.Context, a *app.App, name string, c checking) error {
	shell, err := exec.LookPath("sh")
	if err != nil {
		return app.NotRun(err)
	}
	signals := app.Interrupts()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var report allocator.HealthReport
	var failed []failure
	err = app.UntilSignal(signals, cancel, func() error {
		return a.WithServer(ctx, func(ctx context.Context, conn *app.Connection) error {
			n, err := conn.Node(node.Config{Observer: observe.Func(func(e observe.Event) {
				if e.Kind == observe.Unhealthy { // on the goroutine that checks
					failed = append(failed, failure{e.Resource, e.Err.Error()})
				}
			}), WarnHeldLongerThan: -1})
			if err != nil {
				return err
			}
			read, err := conn.Reader()
			if err != nil {
				return err
			}
			if err := counted(ctx, a, read, name); err != nil {
				return err
			}
			pool := allocator.New(n, name, allocator.Config[string]{
				OpenTimeout: c.timeout, FailureRest: cmp.Or(c.rest, -1),
				Healthy: func(ctx context.Context, resource string) error {
					fault, err := checkOne(ctx, shell, c, name, resource)
					if err != nil {
						cancel(err) // no resource is to blame
					}
					return cmp.Or(err, fault)
				},
			})
			report, err = pool.CheckHealth(ctx, c.workers)
			if exit := (*app.ExitError)(nil); err != nil && errors.As(context.Cause(ctx), &exit) {
				return exit
			}
			return err
		})
	})
	if err == nil || report.Checked > 0 {
		if err := printHealth(a, name, c.rest, report, failed); err != nil {
			return err
		}
	}
	if err == nil && report.Unhealthy > 0 {
		err = app.Exit(app.ExitFailed, fmt.Errorf("of pool %q in namespace %q %s", name, a.Namespace, unhealthy(report.Unhealthy)))
	}
	return err
}

func unhealthy(n int) string {
	if n == 1 {
		return "1 resource has failed"
	}
	return strconv.Itoa(n) + " resources have failed"
}

// unread is how long the stderr of a command that has ended is read on: something that it has
// started, and that has left its group, may have it open.
const unread = time.Second

// checkOne runs the command for one resource until it ends or ctx does: fault says what is
// wrong with the resource, err why the command could not be run.
func checkOne(ctx context.Context, shell string, c checking, name, resource string) (fault, err error) {
	if strings.ContainsRune(resource, 0) {
		return errors.New("it has a NUL byte, which BERTH_RESOURCE cannot have"), nil
	}
	cmd := exec.Command(shell, "-c", c.command)
	cmd.Env = append(os.Environ(), "BERTH_NAME="+name, "BERTH_RESOURCE="+resource)
	said, errs, err := os.Pipe()
	if err != nil {
		return nil, app.NotRun(err)
	}
	defer func() { _ = said.Close() }()
	cmd.Stderr = errs
	process, err := supervise.Start(cmd)
	_ = errs.Close() // the command has its own
	if err != nil {
		return nil, app.NotRun(err)
	}
	var end tail
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(&end, said)
	}()
	select {
	case <-process.Exited():
	case <-ctx.Done():
		process.Kill()
		<-process.Exited()
		fault = fmt.Errorf("not ended within %s", c.timeout)
	}
	process.Kill() // what it has left behind holds nothing
	_ = said.SetReadDeadline(time.Now().Add(unread))
	<-read
	switch code := process.ExitCode(); {
	case fault == nil && code == 0:
		return nil, nil
	case fault == nil:
		fault = fmt.Errorf("exit status %d", code)
	}
	reason := fault.Error()
	if line := end.line(); line != "" {
		reason += ": " + line
	}
	return errors.New(strings.ToValidUTF8(reason[:min(len(reason), settings.MaxText)], "")), nil // a cut rune goes
}

// tail keeps the end of what is written.
type tail struct{ text []byte }

// kept is above how many bytes a tail forgets the first ones.
const kept = 4096

func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p[max(0, len(p)-kept):]...)
	if n := len(t.text) - kept; n > 0 {
		t.text = append(t.text[:0], t.text[n:]...)
	}
	return len(p), nil
}

// line is the last line that is not blank.
func (t *tail) line() string {
	text := strings.TrimSpace(strings.ToValidUTF8(string(t.text), "\uFFFD"))
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}

type healthDocument struct {
	allocator.HealthReport
	Rest   time.Duration `json:"restMs"` // how long the failed ones rest
	Failed []failure     `json:"failed"`
}

func printHealth(a *app.App, name string, rest time.Duration, report allocator.HealthReport, failed []failure) error {
	says := fmt.Sprintf("%s: %d checked, %d healthy, %d failed, %d skipped",
		text.Plain(name), report.Checked, report.Healthy, report.Unhealthy, report.Skipped)
	if err := app.Told(a, name, healthDocument{report, rest, failed}, says); err != nil || a.JSON || len(failed) == 0 {
		return err
	}
	rows := make([]view.Resource, len(failed))
	for i, f := range failed {
		rows[i] = view.Resource{Key: f.Resource, Reason: f.Reason}
	}
	fmt.Fprintln(a.Out)
	return app.Limited(a, view.ResourceColumns.Pick("RESOURCE", "REASON"), rows, 0)
}
