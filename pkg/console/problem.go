package console

import (
	"errors"
	"regexp"
	"strings"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/text"
	"github.com/berth-go/berth/internal/watch"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// address is what in an error names a server: a host with a port, outside quotation marks.
var address = regexp.MustCompile(`(^|[\s(=/@,])(\[[0-9A-Fa-f:.%]+\]|[0-9A-Za-z][0-9A-Za-z.\-]*):[0-9]{2,5}\b`)

// prefix is what begins each error of Berth, also one that another one tells of.
var prefix = regexp.MustCompile(`(^|\n|: )(?:berth: )+`)

// problem is an error as a page shows it. Where the server is, is told nobody who looks: an action's error is whole in its
// event.
func problem(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, berth.ErrUnavailable):
		return "the server is unavailable: it does not answer, or refuses for now"
	case watch.Silent(err):
		return errSilent.Error()
	}
	return text.Escaped(address.ReplaceAllString(plainly(err), "${1}(a server)"))
}

// plainly is an error without the words that are of Berth's code: which call has failed, and how often.
func plainly(err error) string {
	all := err.Error()
	if call := (*scriptkit.Error)(nil); errors.As(err, &call) {
		why := call.Err
		if read := errors.Unwrap(why); read != nil && call.Script == "" { // else it begins with what was read
			why = read
		}
		all = strings.Replace(all, call.Error(), why.Error(), 1)
	}
	return prefix.ReplaceAllString(all, "${1}")
}
