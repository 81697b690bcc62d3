package scriptkit

import (
	"crypto/sha1"
	"encoding/hex"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is a script of that source, called s unless it has a name. It answers ok unless it names its answers.
func script(s Script, source string) *Script {
	if s.Name == "" {
		s.Name = "s"
	}
	if s.Returns == nil {
		s.Returns = []Return{{Status: "ok"}}
	}
	sum := sha1.Sum([]byte(source))
	s.SHA, s.File = hex.EncodeToString(sum[:]), &source
	return &s
}
