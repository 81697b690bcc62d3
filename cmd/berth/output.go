package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/berth-go/berth"
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

// file is the file that the text goes to, nil where it is none.
func (o *output) file() *os.File {
	file, _ := o.Writer.(*os.File)
	return file
}

// outputError says that the program's own text could not be written.
type outputError struct{ cause error }

func (e *outputError) Error() string { return "cannot write the output: " + e.cause.Error() }
func (e *outputError) Unwrap() error { return e.cause }

// printJSON prints one JSON document.
func printJSON(out io.Writer, document any) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(document)
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

// human is a duration as people read it: to three digits or so.
func human(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d == berth.Forever:
		return "forever"
	case d < 0:
		return "0s"
	case d < 10*time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d.Round(100*time.Millisecond) < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	case d.Round(time.Second) < time.Hour:
		d = d.Round(time.Second)
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 2*day:
		d = d.Round(time.Minute)
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	default:
		d = d.Round(time.Hour)
		return fmt.Sprintf("%dd%02dh", d/day, d%day/time.Hour)
	}
}

// millis is a duration in a JSON document: milliseconds, null for one without
// end.
func millis(d time.Duration) *int64 {
	if d == berth.Forever {
		return nil
	}
	n := d.Milliseconds()
	return &n
}

// plain makes a text that others have written fit for a cell: whatever is no
// printable character is quoted, so that it can neither break the table nor
// command the terminal.
func plain(text string) string {
	if text == "" {
		return "-"
	}
	if utf8.ValidString(text) && strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return text
	}
	return strconv.Quote(text)
}
