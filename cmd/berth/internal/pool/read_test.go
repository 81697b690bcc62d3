//go:build unix

package pool

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/cmd/berth/internal/app"
)

// reading reads the keys of a command line, which has the flags of an input, from
// arguments and standard input.
func reading(t *testing.T, stdin string, line ...string) ([]string, error) {
	t.Helper()
	var in input
	var keys []string
	cmd := &cobra.Command{
		Use: "x", SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			keys, err = in.keys(cmd, args)
			return err
		},
	}
	in.bind(cmd)
	cmd.SetArgs(line)
	cmd.SetIn(strings.NewReader(stdin))
	return keys, cmd.Execute()
}

func TestResourcesAreArgumentsOrLines(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "list")
	require.NoError(t, os.WriteFile(file, []byte("one\ntwo"), 0o600))
	for name, test := range map[string]struct {
		stdin string
		line  []string
		want  []string
	}{
		"arguments":             {"", []string{"a", " b ", `"c"`, "d\xff\ne"}, []string{"a", " b ", `"c"`, "d\xff\ne"}},
		"quoted arguments":      {"", []string{"--quoted", "a", `"\x00\n"`, `b"`}, []string{"a", "\x00\n", `b"`}},
		"a file":                {"", []string{"--file", file}, []string{"one", "two"}},
		"lines":                 {"a\n\nb\r\n \t \n c \n\"d\"\n", []string{"--file", "-"}, []string{"a", "b", " c ", `"d"`}},
		"the last has no end":   {"a\nb", []string{"--file=-"}, []string{"a", "b"}},
		"any bytes in lines":    {"|b\n#ALLOCATED\n\xff\xfe\na\x00b\n", []string{"--file=-"}, []string{"|b", "#ALLOCATED", "\xff\xfe", "a\x00b"}},
		"lines that are quoted": {"a\n\"\\n\\x00\\xff\"\n", []string{"--file=-", "--quoted"}, []string{"a", "\n\x00\xff"}},
		"separated by NUL":      {"a\nb\x00\x00 \x00\"c\"\r", []string{"--file=-", "--null"}, []string{"a\nb", " ", "\"c\"\r"}},
		"nothing":               {"\n \n", []string{"--file=-"}, nil},
		"the longest":           {strings.Repeat("x", app.MaxKey), []string{"--file=-"}, []string{strings.Repeat("x", app.MaxKey)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := reading(t, test.stdin, test.line...)
			require.NoError(t, err)
			require.Equal(t, test.want, got)
		})
	}
}

func TestResourcesThatCannotBeReadAreRefusedWithTheirLine(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		stdin string
		line  []string
		code  int
		says  string
	}{
		"nothing is given":     {"a\n", []string{}, 64, "RESOURCE is missing; or --file F to read lines from a file, --file - from standard input"},
		"both are given":       {"", []string{"a", "--file", "-"}, 64, `invalid --file: with "a" there are two places to read from`},
		"no file":              {"", []string{"--file", "/nowhere/at/all"}, 66, "open /nowhere/at/all: no such file or directory"},
		"a directory":          {"", []string{"--file", "/"}, 66, "is a directory"},
		"a file of no name":    {"", []string{"--file", ""}, 64, "invalid --file: it is empty; - is standard input"},
		"NUL in arguments":     {"", []string{"--null", "a"}, 64, "invalid --null: it is for --file; an argument cannot have a NUL, but may be --quoted"},
		"NUL and quotes":       {"", []string{"--file=-", "--null", "--quoted"}, 64, "invalid --null: its keys are taken as they are"},
		"an empty argument":    {"", []string{"a", ""}, 64, "invalid RESOURCE: a key is empty"},
		"an empty quoted one":  {"a\n\"\"\n", []string{"--file=-", "--quoted"}, 64, "standard input, line 2: a key is empty"},
		"no quotes at its end": {"a\n\n\"b\n", []string{"--file=-", "--quoted"}, 64, `standard input, line 3: "\"b" is not in double quotes with escapes as in Go`},
		"a long line":          {"a\n" + strings.Repeat("x", app.MaxKey+1), []string{"--file=-"}, 64, "standard input, line 2: a key has 1025 bytes, at most 1024 are allowed"},
		"an endless line":      {"a\n" + strings.Repeat("x", 2<<20), []string{"--file=-"}, 64, "standard input, line 2: it is longer than a key may be, 1024 bytes"},
		"a long entry":         {"a\x00" + strings.Repeat("x", app.MaxKey+1), []string{"--file=-", "--null"}, 64, "standard input, entry 2: a key has 1025 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := reading(t, test.stdin, test.line...)
			require.ErrorContains(t, err, test.says)
			require.Equal(t, test.code, app.CodeOf(err))
		})
	}
}

// TestWhatIsPrintedIsReadAgain holds for every byte, alone and beside others.
func TestWhatIsPrintedIsReadAgain(t *testing.T) {
	t.Parallel()
	keys := []string{"-", `"`, `""`, `"a"`, " a", "a ", "größe", "\u202eevil", "a\tb", "\x1b[2J", strings.Repeat("\xff", app.MaxKey)}
	for b := range 256 {
		keys = append(keys, string([]byte{byte(b)}), string([]byte{'a', byte(b)}), string([]byte{byte(b), 'a'}), string([]byte{'x', byte(b), 0xc3}))
	}
	var printed bytes.Buffer
	for _, k := range keys {
		text := app.Key(k)
		require.Equal(t, -1, strings.IndexFunc(text, func(r rune) bool { return !strconv.IsPrint(r) }), "%q", text)
		printed.WriteString(text + "\n")
	}
	got, err := reading(t, printed.String(), "--file=-", "--quoted")
	require.NoError(t, err)
	require.Equal(t, keys, got)
}
