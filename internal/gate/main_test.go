package gate

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	useful = 3 * time.Second
	// unsent is the start of a call that was not sent.
	unsent time.Duration = -1
)
