package app

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// manCommand writes the pages of the manual for packages, one for each command and topic. They say what its help says.
func (a *App) manCommand() *cobra.Command {
	return &cobra.Command{
		Use: "man FOLDER", Short: "Write the pages of the manual into a folder", Hidden: true,
		Args: Arguments("FOLDER"),
		RunE: a.Runs(func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return &outputError{err}
			}
			info, _ := debug.ReadBuildInfo()
			return writePages(cmd.Root(), args[0], versionOf(info))
		}),
	}
}

// writePages writes the page of a command, and those of what is below it.
func writePages(cmd *cobra.Command, folder string, version versionDocument) error {
	file := filepath.Join(folder, pageName(cmd)+".1")
	if err := os.WriteFile(file, []byte(page(cmd, version)), 0o644); err != nil {
		return &outputError{err}
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() {
			if err := writePages(sub, folder, version); err != nil {
				return err
			}
		}
	}
	return nil
}

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// page is the help of a command in the language of man.
func page(cmd *cobra.Command, version versionDocument) string {
	var b strings.Builder
	day, _, _ := strings.Cut(version.Time, "T")
	fmt.Fprintf(&b, ".TH %s 1 %q %q Berth\n", strings.ToUpper(roff(pageName(cmd))), day, "berth "+version.Version)
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(pageName(cmd)), roff(cmd.Short))
	b.WriteString(".SH DESCRIPTION\n")
	for paragraph := range strings.SplitSeq(cmp.Or(cmd.Long, cmd.Short), "\n\n") {
		if strings.HasPrefix(paragraph, " ") || strings.Contains(paragraph, "\n ") {
			fmt.Fprintf(&b, ".PP\n.EX\n%s\n.EE\n", roff(paragraph)) // a table, or an example
		} else {
			fmt.Fprintf(&b, ".PP\n%s\n", roff(paragraph))
		}
	}
	for _, s := range sections(cmd) {
		fmt.Fprintf(&b, ".SH %s\n.EX\n%s\n.EE\n", strings.ToUpper(roff(s.heading)), roff(s.text))
	}
	if cmd.HasParent() {
		b.WriteString(".SH SEE ALSO\n.BR berth (1),\n.BR berth\\-flags (1)\n")
	}
	return b.String()
}

// roff is a text that man prints as it is.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, `-`, `\-`, `'`, `\(aq`, "`", "\\(ga", `^`, `\(ha`, `~`, `\(ti`).Replace(strings.Trim(text, "\n"))
	return strings.ReplaceAll("\n"+text, "\n.", "\n\\&.")[1:]
}
