// Package app is what all commands share: their flags, the connection, the output and
// its errors with their exit codes, completion, and what commands about semaphores, locks
// and pools have in common.
package app

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/berth-go/berth/pkg/keyspace"
)

// App is one run of the program.
type App struct {
	Out *output
	Err io.Writer

	global *pflag.FlagSet // the flags that all commands have

	URL       string // --redis
	files     tlsFiles
	Namespace string // --namespace
	JSON      bool   // --json
	NoColor   bool   // --no-color
	form      string // --output
	began     bool   // a command has begun: what is wrong now is no usage
	repeated  bool   // it prints again and again: a document is a line

	kept *Connection // of a command that is repeated, else nil
}

// New is one run of the program that prints there.
func New(out, errs io.Writer) *App { return &App{Out: &output{Writer: out}, Err: errs} }

// Execute runs the program with these commands, and returns its exit code.
func Execute(args []string, in io.Reader, out, errs io.Writer, commands func(a *App) []*cobra.Command) int {
	a := New(out, errs)
	root := a.root()
	root.AddCommand(commands(a)...)
	singles(root)
	filesAside(root)
	root.SetArgs(args)
	root.SetIn(in)
	a.completionCommand(root)
	helpCommand(root)
	root.SetErr(errs)
	var unknown error // a command whose help was asked for
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, rest []string) {
		if unknown = unknownCommand(cmd); unknown == nil {
			help(cmd, rest)
		}
	})
	cmd, err := root.ExecuteContextC(context.Background())
	err = cmp.Or(err, unknown, a.Out.err)
	if err == nil {
		return 0
	}
	if !a.began && !decided(err) {
		err = Usage("%w", err)
	}
	code := CodeOf(err)
	a.tell(err)
	if code == exitUsage {
		fmt.Fprintf(errs, "See '%s --help'.\n", cmd.CommandPath())
	}
	return code
}

// Runs wraps what a command does: an error before it is about usage.
func (a *App) Runs(f func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a.began = true
		return f(cmd, args)
	}
}

const rootHelp = `Berth shares limited things between processes, over a Redis or Valkey server.

A semaphore has a name and a capacity, a lock has a name and lets one in at a
time, a pool has a name and resources, such as proxies or accounts. Whoever wants a
place asks for it, waits in line, first come, first served, holds it under a lease
that is renewed, and gives it back. The place of a process that dies goes to the
next in line when its lease ends.

New here? 'berth demo' shows it, and needs no server.`

const rootExamples = `  berth demo
  berth run --sem gpu --capacity 2 -- python train.py
  berth run --lock nightly -- ./nightly.sh
  berth run --pool proxies -- sh -c 'curl --proxy "$BERTH_RESOURCE" https://example.com'
  berth sem ls
  berth lock show nightly
  berth check --redis rediss://user:password@redis.example.com:6380`

func (a *App) root() *cobra.Command {
	var asked bool
	root := &cobra.Command{
		Use:           "berth",
		Short:         "Share limited things between processes, over Redis or Valkey",
		Long:          rootHelp,
		Example:       rootExamples,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !asked {
				return cmd.Help()
			}
			return a.Runs(a.version)(cmd, nil)
		},
	}
	root.SetFlagErrorFunc(flagError)
	root.Flags().BoolVar(&asked, "version", false, "print the version, as 'berth version'")
	flags := root.PersistentFlags()
	a.global = flags
	flags.StringVar(&a.URL, "redis", "", "`URL` of the server (default $BERTH_REDIS, or "+defaultURL+")")
	flags.StringVar(&a.files.ca, "redis-ca", "", "`FILE` with the authorities, in PEM, to trust instead of the system's (TLS)")
	flags.StringVar(&a.files.cert, "redis-cert", "", "`FILE` with the client's certificate, in PEM (TLS)")
	flags.StringVar(&a.files.key, "redis-key", "", "`FILE` with the key of that certificate, in PEM")
	flags.StringVar(&a.Namespace, "namespace", cmp.Or(os.Getenv(namespaceVariable), keyspace.DefaultNamespace),
		"first part of all keys, also $"+namespaceVariable+"; only one namespace is seen")
	flags.BoolVar(&a.JSON, "json", false, "print one JSON document; not for run, demo, exporter, web and completion")
	flags.BoolVar(&a.NoColor, "no-color", os.Getenv("NO_COLOR") != "", "print no colors, also with $NO_COLOR")
	root.SetUsageFunc(printUsage)
	root.AddCommand(flagsTopic(flags), a.checkCommand(), a.ExplainCommand(VerbOf("")), a.cyclesCommand(), a.lsCommand(), a.eventsCommand(), a.versionCommand(), a.drainCommand(), a.psCommand(), a.manCommand())
	root.AddCommand(a.ActingCommands("")...)
	return root
}

// given reports whether a flag that all commands have was given.
func (a *App) given(flag string) bool { return a.global != nil && a.global.Changed(flag) }

// NoJSON refuses --json where a command prints nothing of its own to put there.
func (a *App) NoJSON(cmd *cobra.Command) error {
	if a.JSON {
		return Usage("--json is not for '%s'", cmd.CommandPath())
	}
	return nil
}
