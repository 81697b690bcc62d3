package line

import (
	"context"
	"fmt"
	"iter"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// What is read here leads to a write.

// Holders goes through the holds of a name; see reader.Reader.
func (s *Calls) Holders(ctx context.Context, name string) iter.Seq2[berth.Holder, error] {
	return s.Decide.Holders(ctx, s.kind.Kind, name)
}

// Waiters goes through the claims that wait, the first in line first; see reader.Reader.
func (s *Calls) Waiters(ctx context.Context, name string) iter.Seq2[berth.Waiter, error] {
	return s.Decide.Waiters(ctx, s.kind.Kind, name)
}

// Names goes through the names that the servers know; see reader.Reader.
func (s *Calls) Names(ctx context.Context) iter.Seq2[string, error] {
	return s.Decide.Every(ctx, s.cfg.Redis, s.kind.Kind)
}

// For names an operator's call of a name, of all names for "", in the errors of what it reads first.
func (s *Calls) For(ctx context.Context, call, name string) context.Context {
	if name == "" {
		return scriptkit.For(ctx, call+" of "+word(s.kind.Kind)+"s")
	}
	return scriptkit.For(ctx, fmt.Sprintf("%s of %s %q", call, word(s.kind.Kind), name))
}

// word is what a name of a kind is called.
func word(kind keyspace.Kind) string {
	if kind == keyspace.Sem {
		return "semaphore"
	}
	return string(kind)
}

// Revision is how far the changes of a name by operators are. An operator's call begins with it: its script is
// told the revision, and refuses a call that another one has overtaken, see [Stale]. call is its name.
func (s *Calls) Revision(ctx context.Context, call, name string) (int64, error) {
	return s.Decide.Revision(s.For(ctx, call, name), s.kind.Kind, name)
}
