package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/state"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/internal/wire"
	"github.com/berth-go/berth/pkg/embedded"
)

func TestATimeMayHaveDays(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"0": 0, "30s": 30 * time.Second, "1h30m": 90 * time.Minute, "1d": 24 * time.Hour, "1d12h": 36 * time.Hour,
		"+2d1ms": 48*time.Hour + time.Millisecond, "-1d12h": -36 * time.Hour, "1.5d": 36 * time.Hour, ".5d30m": 12*time.Hour + 30*time.Minute,
		"106751d": 106751 * 24 * time.Hour, berth.Forever.String(): berth.Forever,
	} {
		got, err := ParseTime(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for text, says := range map[string]string{
		"": "is not a time such as", "d": "is not", "5": "is not", "1d5": "is not", "1h1d": "is not", "1d-1h": "is not", "1d1d": "is not", "forever": "is not",
		"106752d": "is too long", "106751d24h": "is too long", "9999999999999d": "is too long", "-106752d1h": "is too long", "1d9999999h": "is too long",
	} {
		var span time.Duration
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		TimeVar(flags, &span, "for", 0, "how long")
		require.ErrorContains(t, flagError(&cobra.Command{}, flags.Parse([]string{"--for=" + text})), says, text)
	}
}

func TestAFlagForATimeShowsItsDefault(t *testing.T) {
	t.Parallel()
	var span, none, ends time.Duration
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	TimeVar(flags, &span, "for", time.Hour, "how long")
	TimeVar(flags, &none, "from", 0, "since when")
	EndlessVar(flags, &ends, "until", 0, "up to when")
	require.Equal(t, "      --for duration     how long (default 1h0m0s)\n      --from duration    since when\n      --until duration   up to when\n", flags.FlagUsages())
	require.Equal(t, time.Hour, span)
	require.NoError(t, flags.Parse([]string{"--until", "forever"}))
	require.Equal(t, berth.Forever, ends)
	require.Error(t, errors.Unwrap(flags.Parse([]string{"--for", "forever"})))
}

func TestAHostAloneIsAnAddress(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"localhost": "localhost:6379", "redis.example.com:6380": "redis.example.com:6380", "[::1]:6380": "[::1]:6380",
	} {
		option, err := (&App{URL: text}).option()
		require.NoError(t, err)
		require.Equal(t, []string{want}, option.InitAddress)
		require.Nil(t, option.TLSConfig)
	}
}

// TestJSONHasNoCharacterThatCannotBeRead finds every string again as it was.
func TestJSONHasNoCharacterThatCannotBeRead(t *testing.T) {
	wild := "a\x1b\x7f\u0085\u009b2J\u061c\u200b\u200e\u202e\u2028\u2066\ufeff\u3164\U000e0041 größe \U0001f512 <&>"
	var out strings.Builder
	a := New(&out, nil)
	a.Namespace = "b\xff"
	require.NoError(t, PrintJSON(a, wild, berth.Holder{Meta: map[string]string{wild: wild}}))
	require.Equal(t, -1, strings.IndexFunc(strings.ReplaceAll(out.String(), "\n", ""), text.Unreadable), "%q", out.String())
	require.Contains(t, out.String(), `\u202e`)
	require.Contains(t, out.String(), `\udb40\udc41`)
	require.Contains(t, out.String(), "größe \U0001f512 <&>")
	var back Named[berth.Holder]
	require.NoError(t, wire.Unmarshal([]byte(out.String()), &back))
	require.Equal(t, Named[berth.Holder]{"b\xff", wild, berth.Holder{Meta: map[string]string{wild: wild}}}, back)
	out.Reset()
	require.NoError(t, PrintJSON(a, "", berth.Drained{Asked: 1}))
	require.True(t, strings.HasPrefix(out.String(), "{\n  \"namespace\": \"b\\ufffd\",\n  \"namespaceBase64\": \"Yv8=\",\n  \"asked\": 1,\n"), out.String())
	require.Error(t, PrintJSON(a, "a", berth.Target{}), "it has a name")
}

func TestAnErrorCannotCommandTheTerminal(t *testing.T) {
	require.Equal(t, `berth: no \x1b[2J, no \u202e, größe`, OneLine("no \x1b[2J,\n no \u202e, größe"))
	require.Equal(t, "berth: \ufffd2J", OneLine("\x9b2J"), "a byte that some terminals take for a command")
}

func TestTable(t *testing.T) {
	var out strings.Builder
	cell := func(says string) view.Cell { return view.Cell{{Says: says}} }
	require.NoError(t, table(New(&out, io.Discard), []string{"NAME", "HELD"}, [][]view.Cell{{cell("größe"), cell("1")}, {cell("x"), cell("22")}}))
	require.Equal(t, "NAME    HELD\ngröße   1\nx       22\n", out.String())
}

func TestAnUnknownErrorIsTheServers(t *testing.T) {
	require.Equal(t, 0, CodeOf(nil))
	require.Equal(t, exitUnavailable, CodeOf(errors.New("anything")))
	require.Equal(t, exitUsage, CodeOf(berth.Invalid("Lease", "no")))
	require.Equal(t, ExitFailed, CodeOf(fmt.Errorf("so far: %w", &berth.OvertakenError{Name: "gpu", Changed: "capacity 5, before 3"})))
	require.Equal(t, ExitFailed, CodeOf(Exit(ExitFailed, berth.Invalid("Lease", "no"))))
}

func TestRedact(t *testing.T) {
	require.Equal(t, `dial "redis://***@h:1" and rediss://***@i`, redact(`dial "redis://u:p@ss@h:1" and rediss://:x@i`))
	require.Equal(t, "redis://h:1 is a@b", redact("redis://h:1 is a@b"))
	require.Equal(t, "berth: one line", OneLine("berth: one\n  line"))
}

func TestARefusalComesWithAdvice(t *testing.T) {
	t.Parallel()
	s, err := embedded.StartListening("127.0.0.1:0")
	require.NoError(t, err)
	defer s.Close()
	redis, err := s.Client()
	require.NoError(t, err)
	defer redis.Close()
	refusal := func(text string) error {
		eval := redis.B().Eval().Script("return redis.error_reply(ARGV[1])").Numkeys(0).Arg(text).Build()
		return redis.Do(context.Background(), eval).Error()
	}
	full := refusal("OOM command not allowed when used memory > 'maxmemory'.")
	require.EqualError(t, Unreachable("here", full), "refused by the server at here: "+full.Error()+
		"; make room on the server, or raise its maxmemory")
	require.ErrorIs(t, Unreachable("here", full), full)
	role := refusal("NOPERM this user has no permissions to run the 'role' command")
	require.EqualError(t, Unreachable("here", role), "refused by the server at here: "+role.Error()+"; docs/operations.md lists what a user needs")
	denied := refusal("NOPERM this user has no permissions to run the 'scan' command")
	require.EqualError(t, Unreachable("here", denied), "refused by the server at here: "+denied.Error()+
		"; docs/operations.md lists what a user needs: to list all names, +scan beside the smallest ACL")
	other := refusal("BUSY no")
	require.EqualError(t, Unreachable("here", other), "refused by the server at here: "+other.Error())
	keys := refusal("NOPERM this user has no permissions to access one of the keys used as arguments")
	require.EqualError(t, Unreachable("here", keys), "refused by the server at here: "+keys.Error()+
		"; the user's key patterns have to cover the namespace: docs/operations.md")
	broken := fmt.Errorf("the state is %w", state.ErrDamaged)
	require.Equal(t, broken, Unreachable("here", broken))
	old := fmt.Errorf("%w: %w", berth.ErrIncompatible, other)
	require.EqualError(t, Unreachable("here", old), "cannot use the server at here: "+old.Error())
	newer := state.Incompatible("gpu", 9)
	require.Equal(t, newer, Unreachable("here", newer), "the server can be used: one name is newer")
	require.Equal(t, exitUnavailable, CodeOf(newer))
}

func TestTheVersionIsThatOfTheBuild(t *testing.T) {
	t.Parallel()
	of := func(settings ...debug.BuildSetting) string {
		return versionOf(&debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Version: "v1.2.3"}, Settings: settings}).String()
	}
	revision, time := debug.BuildSetting{Key: "vcs.revision", Value: "da66189"}, debug.BuildSetting{Key: "vcs.time", Value: "2026-11-24T09:00:00Z"}
	require.Equal(t, "berth version v1.2.3, go1.26.8", of())
	require.Equal(t, "berth version v1.2.3, revision da66189, 2026-11-24T09:00:00Z, go1.26.8",
		of(revision, time, debug.BuildSetting{Key: "vcs.modified", Value: "false"}))
	require.Equal(t, "berth version v1.2.3, revision da66189 (modified), 2026-11-24T09:00:00Z, go1.26.8",
		of(revision, time, debug.BuildSetting{Key: "vcs.modified", Value: "true"}))
	require.Equal(t, "berth version (devel), built without its revision, "+runtime.Version(), versionOf(nil).String())
}
