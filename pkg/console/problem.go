package console

import (
	"context"
	"errors"
	"net"
	"regexp"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/text"
)

// address is what in an error names a server: a host with a port, outside quotation marks.
var address = regexp.MustCompile(`(^|[\s(=/@,])(\[[0-9A-Fa-f:.%]+\]|[0-9A-Za-z][0-9A-Za-z.\-]*):[0-9]{2,5}\b`)

// silent says whether an error is that of a server that does not answer, or refuses for now.
func silent(err error) bool {
	var broken net.Error
	return errors.Is(err, berth.ErrUnavailable) || errors.As(err, &broken) && !errors.Is(err, context.DeadlineExceeded)
}

// problem is an error as a page shows it. Where the server is, is told nobody who looks: an action's error is whole in its
// event.
func problem(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, berth.ErrUnavailable):
		return "the server is unavailable: it does not answer, or refuses for now"
	case silent(err):
		return errSilent.Error()
	}
	return text.Escaped(address.ReplaceAllString(err.Error(), "${1}(a server)"))
}
