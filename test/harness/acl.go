package harness

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/rueidis"
)

// SmallestUser makes a user on the server with the rules that docs/generated/acl.md
// gives as the smallest, written for this namespace, and with the rules that are
// added to it. It returns what makes a client log in as that user. The server must be
// private.
func (s *Server) SmallestUser(t testing.TB, namespace string, more ...string) func(*rueidis.ClientOption) {
	t.Helper()
	return s.user(t, "user berth ", "smallest", namespace, more)
}

// ReadingUser is the same for the smallest user that only reads.
func (s *Server) ReadingUser(t testing.TB, namespace string, more ...string) func(*rueidis.ClientOption) {
	t.Helper()
	return s.user(t, "user berth-reads ", "reading", namespace, more)
}

func (s *Server) user(t testing.TB, documented, user, namespace string, more []string) func(*rueidis.ClientOption) {
	t.Helper()
	if s.engine == nil {
		t.Fatalf("no users on the Redis at %s: BERTH_TEST_REDIS is shared; use harness.Start", s.Addr)
	}
	const password = "secret"
	line := documentedACL(t, documented)
	line = strings.NewReplacer(
		documented, user+" ",
		"PASSWORD", password,
		"~berth:", "~"+namespace+":",
		"&berth:", "&"+namespace+":",
	).Replace(line)
	admin := s.Client(t)
	command := append(append([]string{"ACL", "SETUSER"}, strings.Fields(line)...), more...)
	if err := admin.Do(t.Context(), admin.B().Arbitrary(command...).Build()).Error(); err != nil {
		t.Fatalf("the Redis at %s does not take the documented ACL: %v", s.Addr, err)
	}
	return func(o *rueidis.ClientOption) { o.Username, o.Password = user, password }
}

// documentedACL is the line of docs/generated/acl.md that begins so.
func documentedACL(t testing.TB, begins string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; ; dir = filepath.Dir(dir) {
		text, err := os.ReadFile(filepath.Join(dir, "docs", "generated", "acl.md"))
		if err == nil {
			for line := range strings.Lines(string(text)) {
				if strings.HasPrefix(line, begins) {
					return strings.TrimSpace(line)
				}
			}
			t.Fatalf("docs/generated/acl.md does not give the smallest ACL: run `make docs`")
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no docs/generated/acl.md above the test's folder")
		}
	}
}
