package app

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const flagsHelp = `These flags are there for every command.

%s
The server is given by --redis or by the variable BERTH_REDIS; the flag counts
first. The password is better in BERTH_REDIS or in BERTH_REDIS_PASSWORD, which counts
where the URL has none; it is never printed.

  host or host:port                            as redis://host:port
  redis://[user:password@]host[:port][/db]     also valkey://
  rediss://...                                 TLS; also valkeys://
  redis://host:6379?addr=host2:6379            Cluster: any of its nodes, also just one
  redis://host:26379?master_set=mymaster&addr=host2:26379
                                               Sentinel: user and password are those
                                               of the server behind it
  unix:///path/to/redis.sock?db=1

Further parameters: db, dial_timeout (default 5s) and write_timeout, client_name,
protocol=2 (RESP2), skip_verify (TLS without checking the certificate), max_retries,
client_cache; others are refused. Special characters in a password in the URL are
percent-encoded: @ is %%40, / is %%2F.

Exit codes: 0 all is well, 1 not as it should be, 64 wrong usage, 65 what is stored
is damaged, 66 a file cannot be read, 69 the server cannot be reached or refuses, 74
the output cannot be written; those of run are in 'berth run --help'.`

// flagsTopic is what berth help flags prints.
func flagsTopic(global *pflag.FlagSet) *cobra.Command {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.AddFlagSet(global)
	flags.BoolP("help", "h", false, "print what the command does, and the flags of its own")
	return &cobra.Command{
		Use: "flags", Short: "The flags of all commands, how a server is given, exit codes",
		Long: fmt.Sprintf(flagsHelp, flags.FlagUsages()),
	}
}

// helpCommand lets cobra's command refuse what is no command.
func helpCommand(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help := child(root, "help")
	help.Use, help.Long = "help [COMMAND]", "Print the help of a command, as 'berth COMMAND --help' does, or of a topic."
	help.Run = nil
	help.RunE = func(_ *cobra.Command, args []string) error {
		about, rest, err := root.Find(args)
		if err != nil || len(rest) > 0 {
			return noCommand(about, append(rest, args...))
		}
		about.InitDefaultHelpFlag()
		return about.Help()
	}
}

// groups is the annotation of a command with the headings of its flags, one a line, and of a flag with its heading.
const groups = "groups"

// FlagGroup puts flags of a command, which exist, under a heading in its help.
func FlagGroup(cmd *cobra.Command, heading string, flags ...string) {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[groups] += heading + "\n"
	for _, flag := range flags {
		_ = cmd.Flags().SetAnnotation(flag, groups, []string{heading})
	}
}

// A section is a part of a command's help that is made.
type section struct{ heading, text string }

// sections are those that have a text: the usage of a command, its examples, its commands and its flags.
func sections(cmd *cobra.Command) (all []section) {
	add := func(heading, text string) {
		if text != "" {
			all = append(all, section{heading, strings.TrimRight(text, "\n")})
		}
	}
	usage := cmd.UseLine()
	if cmd.HasAvailableSubCommands() {
		usage = cmd.CommandPath() + " COMMAND"
	}
	add("Usage", "  "+usage)
	add("Examples", cmd.Example)
	var commands, topics string
	for _, sub := range cmd.Commands() {
		line := fmt.Sprintf("  %-*s  %s\n", sub.NamePadding(), sub.Name(), sub.Short)
		switch {
		case sub.IsAdditionalHelpTopicCommand():
			topics += line
		case sub.IsAvailableCommand() || sub.Name() == "help":
			commands += line
		}
	}
	add("Commands", commands)
	flags := map[string]*pflag.FlagSet{}
	cmd.LocalNonPersistentFlags().VisitAll(func(flag *pflag.Flag) {
		if flag.Name == "help" {
			return
		}
		heading := strings.Join(flag.Annotations[groups], "")
		if flags[heading] == nil {
			flags[heading] = pflag.NewFlagSet("", pflag.ContinueOnError)
		}
		flags[heading].AddFlag(flag)
	})
	for _, heading := range strings.Split(cmd.Annotations[groups], "\n") { // the last one is ""
		if some := flags[heading]; some != nil {
			add(cmp.Or(heading, "Flags"), some.FlagUsages())
		}
	}
	add("Topics", topics)
	return all
}

// printUsage prints the part of a command's help that is made.
func printUsage(cmd *cobra.Command) error {
	var b strings.Builder
	for i, s := range sections(cmd) {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s:\n%s\n", s.heading, s.text)
	}
	fmt.Fprintln(&b, "\nFlags of all commands, how the server is given, exit codes: 'berth help flags'.")
	_, err := fmt.Fprint(cmd.OutOrStderr(), b.String())
	return err
}
