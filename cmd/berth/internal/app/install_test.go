package app_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/cmd/berth/internal/apptest"
)

func TestCompletionIsInstalledForTheUser(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("XDG_DATA_HOME", "not/absolute")
	install := func(args ...string) apptest.Result {
		return apptest.Call(t, apptest.Nobody, append([]string{"completion", "install"}, args...)...)
	}
	for shell, of := range map[string]struct{ file, needs string }{
		"bash": {".local/share/bash-completion/completions/berth", "The package bash-completion loads it: install that where it is missing, and begin a new shell.\n"},
		"zsh":  {".local/share/zsh/site-functions/_berth", "Before the compinit in ~/.zshrc put the line below, and begin a new shell.\nfpath=(" + home + "/.local/share/zsh/site-functions $fpath)\n"},
		"fish": {".config/fish/completions/berth.fish", "A new shell loads it.\n"},
	} {
		path := filepath.Join(home, of.file)
		written := apptest.Outcome(0, "Written: "+path+"\n"+of.needs, "")
		t.Setenv("SHELL", "/usr/bin/"+shell)
		require.Equal(t, written, install())
		script := string(apptest.Got(os.ReadFile(path))(t))
		first, rest, _ := strings.Cut(script, "\n")
		rest, marked := strings.CutPrefix(rest, "# Written by 'berth completion install', which replaces this file.\n")
		require.True(t, marked)
		require.Equal(t, apptest.Call(t, apptest.Nobody, "completion", shell).Out, first+"\n"+rest)
		if program, err := exec.LookPath(shell); err == nil {
			require.NoError(t, exec.Command(program, "-n", path).Run(), "it is a script of that shell")
		}
		require.Equal(t, written, install("--shell", shell), "it replaces its own")

		require.NoError(t, os.WriteFile(path, []byte("# mine\n"), 0o600))
		require.Equal(t, apptest.Outcome(1, "", "berth: \""+path+"\" is there, and not of this command: it stays as it is\n"), install())
		require.Equal(t, "# mine\n", string(apptest.Got(os.ReadFile(path))(t)))
		require.Len(t, apptest.Got(os.ReadDir(filepath.Dir(path)))(t), 1, "nothing else is left")
	}
	elsewhere := filepath.Join(home, "a b")
	t.Setenv("XDG_DATA_HOME", elsewhere)
	require.Contains(t, install("--shell", "zsh").Ends(t, 0).Out, "\nfpath=('"+elsewhere+"/zsh/site-functions' $fpath)\n")
	require.NoError(t, os.WriteFile(filepath.Join(home, "file"), nil, 0o600))
	t.Setenv("XDG_DATA_HOME", filepath.Join(home, "file"))
	require.Contains(t, install("--shell", "bash").Ends(t, 74).Err, "cannot write the output: ")

	t.Setenv("SHELL", "/bin/ksh")
	require.Equal(t, apptest.Outcome(64, "", "berth: $SHELL is none of bash, fish, zsh; say --shell\nSee 'berth completion install --help'.\n"), install())
	require.Contains(t, install("--shell", "ksh").Ends(t, 64).Err, "invalid --shell: \"ksh\" is none of bash, fish, zsh")
	require.Contains(t, install("--json").Ends(t, 64).Err, "--json is not for 'berth completion install'")
	t.Setenv("HOME", "")
	t.Setenv("XDG_DATA_HOME", "")
	require.Contains(t, install("--shell", "bash").Ends(t, 64).Err, "there is no home")
}
