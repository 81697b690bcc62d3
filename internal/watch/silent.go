package watch

import (
	"context"
	"errors"
	"net"

	"github.com/berth-go/berth"
)

// Silent says whether an error is that of a server that does not answer, or refuses for now.
func Silent(err error) bool {
	var broken net.Error
	var link *net.OpError // also one that has lasted too long
	return errors.Is(err, berth.ErrUnavailable) || errors.As(err, &link) || errors.As(err, &broken) && !errors.Is(err, context.DeadlineExceeded)
}
