package pool

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/cmd/berth/internal/app"
)

// keysHelp says how any bytes come in and out.
const keysHelp = `The key of a resource is any bytes, 1 to 1024. One that is not printable is shown
in double quotes, with escapes as in Go ("a\nb", "\xff"); with --quoted, add,
replace, remove and rest take it back in that form.`

const inputHelp = `The resources are arguments or, with --file F, the lines of a file, - for standard
input. Lines that are blank are skipped, and a carriage return at the end of a line
is not part of it; nothing else is trimmed. With --null the file is separated by
NUL instead of newlines, as of 'find -print0', and its keys are taken as they are.
With --quoted a key in double quotes is read with its escapes, as 'berth pool show'
prints it, so that a key may have any bytes, newlines and NUL included.`

// input is where the keys of a command come from.
type input struct {
	file   string
	null   bool
	quoted bool
}

// bind adds the flags of an input to a command.
func (in *input) bind(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&in.file, "file", "", "read the resources from `FILE`, one a line; - for standard input")
	flags.BoolVar(&in.null, "null", false, "the file is separated by NUL, not by newlines")
	app.QuotedFlag(cmd, &in.quoted)
	_ = cmd.MarkFlagFilename("file") // the flag exists
}

// keys returns the keys that a command was given, all of them checked.
func (in *input) keys(cmd *cobra.Command, args []string) ([]string, error) {
	file := cmd.Flags().Changed("file")
	switch {
	case file && len(args) > 0:
		return nil, berth.Invalid("--file", "with %q there are two places to read from; leave one of them out", args[0])
	case !file && in.null:
		return nil, berth.Invalid("--null", "it is for --file; an argument cannot have a NUL, but may be --quoted")
	case !file && len(args) == 0:
		return nil, app.Usage("RESOURCE is missing; or --file F to read lines from a file, --file - from standard input")
	case in.null && in.quoted:
		return nil, berth.Invalid("--null", "its keys are taken as they are, and not --quoted; leave one of them out")
	case file && in.file == "":
		return nil, berth.Invalid("--file", "it is empty; - is standard input")
	case !file:
		return in.arguments(args)
	case in.file == "-":
		return in.read(cmd.InOrStdin(), "standard input")
	}
	f, err := os.Open(in.file)
	if err != nil {
		return nil, app.Exit(app.ExitNoInput, err)
	}
	defer func() { _ = f.Close() }() // nothing was written
	return in.read(f, in.file)
}

func (in *input) arguments(args []string) (keys []string, err error) {
	keys = make([]string, len(args))
	for i, arg := range args {
		if arg == "-" && !in.quoted {
			return nil, berth.Invalid("RESOURCE", `to read standard input say --file -, for a key that is "-" --quoted`)
		}
		if keys[i], err = app.KeyArgument("RESOURCE", arg, in.quoted); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// read reads the keys of a file. An error of usage names the line.
func (in *input) read(from io.Reader, name string) ([]string, error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20) // far above a key with escapes
	what := "line"
	if in.null {
		what = "entry"
		lines.Split(nulls)
	}
	var keys []string
	number := 0
	for lines.Scan() {
		number++
		line := lines.Text()
		if line == "" || (!in.null && len(bytes.TrimSpace(lines.Bytes())) == 0) {
			continue
		}
		key, err := app.KeyOf(line, in.quoted)
		if err != nil {
			return nil, app.Usage("%s, %s %d: %w", name, what, number, err)
		}
		keys = append(keys, key)
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, app.Usage("%s, %s %d: it is longer than a key may be, %d bytes", name, what, number+1, app.MaxKey)
	case err != nil:
		return nil, app.Exit(app.ExitNoInput, fmt.Errorf("%s: %w", name, err))
	}
	return keys, nil
}

// nulls splits at NUL, as bufio.ScanLines at newlines.
func nulls(data []byte, end bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, 0); i >= 0 {
		return i + 1, data[:i], nil
	}
	if end && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}
