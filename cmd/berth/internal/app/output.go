package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf16"

	"golang.org/x/term"

	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/internal/wire"
)

// output is where the program's own text goes. It keeps the first error, because
// not every line is worth a look at its own.
type output struct {
	io.Writer
	err error // an *outputError, or nil
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if err != nil {
		err = &outputError{err}
		if o.err == nil {
			o.err = err
		}
	}
	return n, err
}

// File is the file that the text goes to, nil where it is none.
func (o *output) File() *os.File {
	file, _ := o.Writer.(*os.File)
	return file
}

// outputError says that the program's own text could not be written.
type outputError struct{ cause error }

func (e *outputError) Error() string { return "cannot write the output: " + e.cause.Error() }
func (e *outputError) Unwrap() error { return e.cause }

// Document is what is printed of a value, a struct.
type Document[T any] struct {
	Namespace string `json:"namespace"`
	Value     T      `json:",inline"`
}

// Named is what is printed of a value that is of a name, and does not tell it.
type Named[T any] struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Value     T      `json:",inline"`
}

// PrintJSON prints a [Named], or without a name a [Document]. Its strings have no character in them that
// moves a cursor or misleads an eye: such ones are escaped, as JSON can.
func PrintJSON[T any](a *App, name string, value T) error {
	document := any(Document[T]{a.Namespace, value})
	if name != "" {
		document = Named[T]{a.Namespace, name, value}
	}
	written, err := wire.Marshal(document)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, append(written, '\n'), "", "  "); err != nil {
		return err
	}
	// Outside of strings all is ASCII, and package wire has escaped its controls but DEL.
	_, err = io.WriteString(a.Out, text.Replaced(b.String(), func(r rune) bool { return r >= 0x7f && text.Unreadable(r) }, func(r rune) string {
		units := utf16.AppendRune(nil, r)
		if len(units) == 1 {
			return fmt.Sprintf(`\u%04x`, units[0])
		}
		return fmt.Sprintf(`\u%04x\u%04x`, units[0], units[1])
	}))
	return err
}

// Told prints what has come of a command: a document as JSON, or else what it says.
func Told[T any](a *App, name string, document T, says string) error {
	if a.JSON {
		return PrintJSON(a, name, document)
	}
	_, err := fmt.Fprintln(a.Out, says)
	return err
}

// table prints rows in aligned columns under a heading.
func table(out io.Writer, heading []string, rows [][]string) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, strings.Join(heading, "\t"))
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	return w.Flush()
}

// Collect returns all of a listing, and the errors that came between.
func Collect[T any](listing iter.Seq2[T, error]) (all []T, failed error) {
	all = []T{}
	var errs []error
	for one, err := range listing {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, one)
	}
	return all, errors.Join(errs...)
}

// Listed prints a listing, and returns what it left out as its error. Where nothing
// could be read nothing is printed: that is not the same as that there is nothing.
func Listed(failed error, found int, show func() error) error {
	if failed == nil || found > 0 {
		if err := show(); err != nil {
			return err
		}
	}
	return failed
}

// Capable reports whether a terminal can move its cursor and show colors, as its user's environment tells. On Windows a program has
// to make it so first.
func Capable() bool {
	return runtime.GOOS != "windows" && !slices.Contains([]string{"", "dumb"}, os.Getenv("TERM"))
}

// Colors reports whether what is printed may have colors.
func (a *App) Colors() bool { return !a.NoColor && Capable() && IsTerminal(a.Out.Writer) }

// IsTerminal reports whether somebody looks at what is written there.
func IsTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
