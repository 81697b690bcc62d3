package app

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/text"
)

const installHelp = `Write the script of completion for a shell, that of $SHELL or of --shell, to where the shell looks
for those of one user:

  bash   ${XDG_DATA_HOME:-~/.local/share}/bash-completion/completions/berth
  zsh    ${XDG_DATA_HOME:-~/.local/share}/zsh/site-functions/_berth
  fish   ${XDG_CONFIG_HOME:-~/.config}/fish/completions/berth.fish

A file that is there is replaced only if this command has written it. What else the shell needs is said.

Exit code 1: a file is there that this command has not written.`

// mark is the second line of a script that was installed: zsh needs its own first line.
const mark = "# Written by 'berth completion install', which replaces this file.\n"

// completed is a shell that looks for scripts of completion in a folder.
type completed struct {
	under    string // the variable with the folder of the user
	home     string // that folder below the home, by default
	file     string // the script, below it
	generate func(root *cobra.Command, out io.Writer) error
	needs    string // takes the folder of the script
}

var completedShells = map[string]completed{
	"bash": {
		"XDG_DATA_HOME", ".local/share", "bash-completion/completions/berth",
		func(root *cobra.Command, out io.Writer) error { return root.GenBashCompletionV2(out, true) },
		"The package bash-completion loads it: install that where it is missing, and begin a new shell.",
	},
	"zsh": {
		"XDG_DATA_HOME", ".local/share", "zsh/site-functions/_berth", (*cobra.Command).GenZshCompletion,
		"Before the compinit in ~/.zshrc put the line below, and begin a new shell.\nfpath=(%s $fpath)",
	},
	"fish": {
		"XDG_CONFIG_HOME", ".config", "fish/completions/berth.fish",
		func(root *cobra.Command, out io.Writer) error { return root.GenFishCompletion(out, true) },
		"A new shell loads it.",
	},
}

// installCommand is berth completion install.
func (a *App) installCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "install [--shell SHELL]",
		Short: "Write the script to where the shell looks for it",
		Long:  installHelp, Example: "  berth completion install --shell zsh",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return fmt.Errorf("%q is one argument too many; a shell is named by --shell", args[0])
			}
			return Arguments()(cmd, args)
		},
		RunE: a.Runs(func(cmd *cobra.Command, _ []string) error {
			if err := a.NoJSON(cmd); err != nil {
				return err
			}
			shell, known := completedShells[cmp.Or(name, filepath.Base(os.Getenv("SHELL")))]
			words := strings.Join(slices.Sorted(maps.Keys(completedShells)), ", ")
			switch {
			case name != "" && !known:
				return berth.Invalid("--shell", "%q is none of %s", name, words)
			case !known:
				return Usage("$SHELL is none of %s; say --shell", words)
			}
			return shell.install(cmd.Root(), a.Out)
		}),
	}
	cmd.Flags().StringVar(&name, "shell", "", "`SHELL`: bash, fish or zsh (default that of $SHELL)")
	completeFlag(cmd, "shell", slices.Sorted(maps.Keys(completedShells)))
	return cmd
}

func (s completed) install(root *cobra.Command, out io.Writer) error {
	folder := os.Getenv(s.under)
	if !filepath.IsAbs(folder) { // as the specification of these variables has it
		home, err := os.UserHomeDir()
		if err != nil {
			return Usage("there is no home: %w", err)
		}
		folder = filepath.Join(home, s.home)
	}
	path := filepath.Join(folder, s.file)
	old, err := os.ReadFile(path)
	_, rest, _ := strings.Cut(string(old), "\n")
	switch {
	case err == nil && !strings.HasPrefix(rest, mark):
		return Exit(ExitFailed, fmt.Errorf("%s is there, and not of this command: it stays as it is", text.Quoted(path)))
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return &outputError{err}
	}
	var script bytes.Buffer
	if err := s.generate(root, completionScripts{&script}); err != nil {
		return err
	}
	first, rest, _ := strings.Cut(script.String(), "\n")
	if err := cmp.Or(os.MkdirAll(filepath.Dir(path), 0o755), replace(path, first+"\n"+mark+rest)); err != nil {
		return &outputError{err}
	}
	needs := s.needs
	if strings.Contains(needs, "%s") {
		needs = fmt.Sprintf(needs, text.Shell(filepath.Dir(path)))
	}
	_, err = fmt.Fprintf(out, "Written: %s\n%s\n", text.Plain(path), needs)
	return err
}

// replace writes a file whole, or not at all.
func replace(path, text string) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".berth-*")
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	if err = errors.Join(err, file.Chmod(0o644), file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name())
	}
	return err
}
