package app

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// noCommand refuses arguments of a command of commands: the first one is none of them.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	meant := cmp.Or(like(cmd, args[0], ""), didYouMean(elsewhere(cmd.Root(), args[0]), ""))
	return fmt.Errorf("unknown command %q for %q%s", args[0], cmd.CommandPath(), meant)
}

// elsewhere are the paths of the commands of that name at or below a command.
func elsewhere(cmd *cobra.Command, name string) (paths []string) {
	for _, sub := range cmd.Commands() {
		if sub.Name() == name && sub.IsAvailableCommand() {
			paths = append(paths, sub.CommandPath())
		}
		paths = append(paths, elsewhere(sub, name)...)
	}
	return paths
}

// unknownCommand refuses the arguments of a command of commands where --help is asked for: cobra would look at none.
func unknownCommand(cmd *cobra.Command) error {
	args := cmd.Flags().Args()
	if len(args) == 0 || !cmd.HasSubCommands() {
		return nil
	}
	return cmd.ValidateArgs(args)
}

// likeFlag is like for the flags of a command.
func likeFlag(cmd *cobra.Command, typed string) string {
	flags := &cobra.Command{}
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		flags.AddCommand(&cobra.Command{Use: flag.Name, Run: func(*cobra.Command, []string) {}, Hidden: flag.Hidden})
	})
	return like(flags, typed, "--")
}

// like asks whether one of the commands was meant that are spelled like what was typed,
// or begin with it; "" if there is none. Of a short word one letter may differ, of a
// longer one two.
func like(cmd *cobra.Command, typed, prefix string) string {
	cmd.SuggestionsMinimumDistance = 1
	if len(typed) > 3 {
		cmd.SuggestionsMinimumDistance = 2
	}
	if typed == "" {
		return ""
	}
	return didYouMean(cmd.SuggestionsFor(typed), prefix)
}

func didYouMean(meant []string, prefix string) string {
	if len(meant) == 0 {
		return ""
	}
	return ". Did you mean this? " + prefix + strings.Join(meant, ", "+prefix)
}
