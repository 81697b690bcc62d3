package integration

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/testkit"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/test/harness"
)

// shellsVariable is "required" where a missing shell is a failure, and no reason to skip.
const shellsVariable = "BERTH_TEST_SHELLS"

// shells are those for which there is a script of completion that is installed: what each reads when it begins, and how
// it is begun in the folder that has this file.
var shells = map[string]struct {
	file, text string
	begin      []string
}{
	"bash": {"rc", ". /usr/share/bash-completion/bash_completion\n", []string{"bash", "--rcfile", "rc", "-i"}},
	"zsh":  {".zshrc", "fpath=(~/.local/share/zsh/site-functions $fpath)\nautoload -U compinit; compinit -u -D\n", []string{"ZDOTDIR=.", "zsh", "-d", "-i"}},
	"fish": {"rc.fish", "source ~/.config/fish/completions/berth.fish\n", []string{"fish", "--no-config", "-i", "-C", "source rc.fish"}},
}

// answers is a program that stands for berth, and keeps the last answer to a completion.
const answers = `#!/bin/sh
"$BERTH" "$@" >answer.new
code=$?
cat answer.new
mv answer.new answer
exit $code
`

// shell is a shell on a terminal that completes what is typed for berth.
type shell struct {
	*terminal
	folder string // where it is
	lines  int    // that it has run
}

func (w *world) shell(name, program string) *shell {
	w.Helper()
	w.needs(shellsVariable, "shells", name, "/usr/share/bash-completion/bash_completion")
	folder, err := os.MkdirTemp("", "berth-shell-") // not TempDir: a shell that is ending may write its history yet
	require.NoError(w, err)
	w.Cleanup(func() { _ = os.RemoveAll(folder) })
	s := &shell{folder: folder}
	of := shells[name]
	require.NoError(w, os.WriteFile(filepath.Join(s.folder, of.file), []byte(of.text), 0o600))
	require.NoError(w, os.WriteFile(filepath.Join(s.folder, "berth"), []byte(answers), 0o700))
	install := exec.CommandContext(w.Within(patience), program, "completion", "install", "--shell", name)
	install.Env = append(os.Environ(), "HOME="+s.folder, "XDG_DATA_HOME=", "XDG_CONFIG_HOME=")
	require.NoError(w, install.Run())
	s.terminal = w.runAt(160, 50, "env", append([]string{
		"-C", s.folder, "HOME=" + s.folder, "XDG_DATA_HOME=", "XDG_CONFIG_HOME=", "BERTH=" + program, "PATH=" + s.folder + ":" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0",
	}, of.begin...)...)
	return s
}

// has returns a file in the folder of the shell.
func (s *shell) has(name string) (text string, ok bool) {
	data, err := os.ReadFile(filepath.Join(s.folder, name))
	return string(data), err == nil
}

// ends waits until the shell has run all that was typed, which has run nothing else.
func (s *shell) ends() {
	s.Helper()
	s.lines++
	mark := fmt.Sprint("line-", s.lines)
	s.types("echo >" + mark)
	s.Await("the shell runs a line", func() bool {
		require.NoFileExists(s, filepath.Join(s.folder, "pwned"))
		_, ok := s.has(mark)
		return ok
	})
}

// words types texts, with a Tab after each, and returns the arguments as which the shell then reads the line, and what
// berth has answered last.
func (s *shell) words(texts ...string) (words, answer string) {
	s.Helper()
	s.tabs(texts)
	s.press("C-a")
	s.types(`printf '[%s]' >words `)
	s.ends()
	words, _ = s.has("words")
	answer, _ = s.has("answer")
	return strings.TrimPrefix(words, "[berth]"), answer
}

func (s *shell) tabs(texts []string) {
	s.Helper()
	for _, text := range texts {
		if text != "" {
			s.tmux("send-keys", "-l", text)
		}
		s.press("Tab")
	}
}

// completes waits until the shell makes these arguments of what is typed. On a busy machine a completion gives up.
func (s *shell) completes(args []string, texts ...string) {
	s.Helper()
	s.missing = "[" + strings.Join(args, "][") + "]"
	s.Await(s.missing+" is completed", func() bool {
		s.seen, _ = s.words(texts...)
		return s.seen == s.missing
	})
}

// offersNothing waits until berth has answered what is typed, which stays as it is.
func (s *shell) offersNothing(args []string, texts ...string) {
	s.Helper()
	s.Await(fmt.Sprintf("%q is answered", texts), func() bool {
		words, answer := s.words(texts...)
		require.Equal(s, "["+strings.Join(args, "][")+"]", words)
		return answer == ":4\n"
	})
}

// Whoever asks for a lock chooses a name that operators complete. No shell runs such a name, and one that is the only
// candidate is completed as the word that it is, also where a claim is completed behind it.
func TestCompletionRunsNoName(t *testing.T) {
	w := shared(t)
	program := w.berth()
	locks := w.locker(node.Config{})
	claims := make(map[string]string)
	lasts := &qlock.LockOptions{Lease: time.Hour, NoRenew: true} // also where the machine stands still
	for _, name := range []string{
		"e$(id>pwned)x", "e$(id>pwned)y", "orders:eu-west.1", "orders:us,in", "team@a", "team@b/c", "region/nn",
		"a$(id>pwned)", "b`id>pwned`", "c;id>pwned;", `d'"|id>pwned"'`, "f(id>pwned)&", "g h\\i", "j=~root:~", "k>pwned", "l!!*?[a]#^", "ünder",
	} {
		lock, err := locks.Lock(w.Within(patience), name, lasts)
		require.NoError(w, err)
		claims[name] = lock.ID()
	}
	// Each is the only name in a namespace.
	edges := []string{"=ls", "$(id>pwned)", "#x", "%1", "!x"}
	alone := func(i int) string { return fmt.Sprint(w.ns, "-", i) }
	for i, name := range append(edges, "-rf", "~root") {
		n, err := node.New(w.admin, node.Config{Namespace: alone(i)})
		require.NoError(w, err)
		w.closed(n.Close)
		_, err = qlock.New(n, qlock.Config{}).Lock(w.Within(patience), name, lasts)
		require.NoError(w, err)
	}
	for name := range shells {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := *w
			in.Patient = testkit.RealTime(t)
			s := in.shell(name, program)
			s.offersNothing([]string{"lock", "explain", "e"}, "berth lock explain e", "", "")
			for i := range 2 { // a flag, and somebody's home
				ns := alone(len(edges) + i)
				s.offersNothing([]string{"--namespace", ns, "lock", "explain"}, "berth --namespace "+ns+" lock explain ", "")
			}
			s.tabs([]string{`berth run "--lock=;id>pwned;=`})
			s.press("C-u")
			s.ends()

			for of, claim := range claims {
				if !strings.ContainsAny(of[:1], "eot") {
					s.completes([]string{"lock", "explain", of, claim}, "berth lock explain "+strings.SplitAfter(of, "")[0], "")
				}
			}
			s.completes([]string{"lock", "explain", "orders:us,in"}, "berth lock explain or", "u")
			s.completes([]string{"lock", "explain", "team@b/c"}, "berth lock explain t", "b")
			s.completes([]string{"run", "--lock=orders:eu-west.1"}, "berth run --lock=or", "e")
			for i, edge := range edges {
				s.completes([]string{"--namespace", alone(i), "lock", "explain", edge}, "berth --namespace "+alone(i)+" lock explain ")
			}
		})
	}
}

// The smallest ACL has no SCAN: who may not list all names is told so, and not that
// there are none.
func TestTheCommandOfTheSmallestUser(t *testing.T) {
	w := private(t)
	w.server.SmallestUser(t, w.ns)
	w.take(w.sem(w.node(node.Config{}), "gpu", 1), nil)
	program, err := harness.Command()
	require.NoError(t, err)
	run := func(args ...string) (code int, out, errs string) {
		cmd := exec.CommandContext(w.Within(patience), program, args...)
		cmd.Env = append(os.Environ(), "BERTH_REDIS=redis://smallest@"+w.server.Addr, "BERTH_REDIS_PASSWORD=secret", "BERTH_NAMESPACE="+w.ns)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Run(); err != nil {
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit)
		}
		return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
	}
	for _, args := range [][]string{{"sem", "ls"}, {"lock", "ls"}, {"pool", "ls", "--json"}} {
		code, out, errs := run(args...)
		require.Equal(t, 69, code, errs)
		require.Empty(t, out)
		require.Regexp(t, `^berth: refused by the server at \S+: .*'scan' command.*\+scan beside the smallest ACL\n$`, errs)
	}
	for _, args := range [][]string{{"check"}, {"sem", "show", "gpu"}, {"run", "--lock", "nightly", "true"}} {
		code, _, errs := run(args...)
		require.Equal(t, 0, code, errs)
	}
	w.do("ACL", "SETUSER", "smallest", "+scan")
	code, out, errs := run("sem", "ls")
	require.Equal(t, 0, code, errs)
	require.Regexp(t, `(?m)^gpu +1 +1/1 +0 `, out)
}
