package line

import (
	"context"
	"iter"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// Names goes through the names of a kind that the server knows, each once. It
// promises what SCAN promises, on every node of a cluster. timeout bounds each of
// its calls.
func Names(ctx context.Context, client rueidis.Client, space keyspace.Space, kind keyspace.Kind, timeout time.Duration) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for names := range namesByServer(ctx, client, space, kind, timeout, false) {
			for name, err := range names {
				if !yield(name, err) {
					return
				}
			}
		}
	}
}

// namesByServer is Names, with the names of each node of a cluster by themselves; all or those in fat
// form alone.
func namesByServer(ctx context.Context, client rueidis.Client, space keyspace.Space, kind keyspace.Kind, timeout time.Duration, fat bool) iter.Seq[iter.Seq2[string, error]] {
	const count = 500
	return func(yield func(iter.Seq2[string, error]) bool) {
		seen := make(map[string]bool)
		for _, node := range client.Nodes() {
			names := func(yield func(string, error) bool) {
				for cursor := uint64(0); ; {
					all := node.B().Scan().Cursor(cursor).Match(space.Match(kind)).Count(count)
					scan := all.Build
					if fat {
						scan = all.Type("hash").Build
					}
					// Rueidis repeats what only reads for as long as it may.
					limited, cancel := scriptkit.Limit(ctx, timeout)
					entry, err := node.Do(limited, scan()).AsScanEntry()
					cancel()
					if err != nil {
						yield("", scriptkit.Failure(limited, "SCAN", err))
						return
					}
					for _, key := range entry.Elements {
						name, ok := space.NameOf(kind, key)
						if ok && !seen[name] && !yield(name, nil) {
							return
						}
						seen[name] = true
					}
					if cursor = entry.Cursor; cursor == 0 {
						return
					}
				}
			}
			if !yield(names) {
				return
			}
		}
	}
}
