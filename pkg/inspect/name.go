package inspect

import (
	"context"
	"sync"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/notice"
	"github.com/berth-go/berth/internal/reader"
	"github.com/berth-go/berth/pkg/keyspace"
)

// Name reads one name. One that is not there has no Capacity; that is no error.
func (r *Reader) Name(ctx context.Context, kind keyspace.Kind, name string) (berth.Name, error) {
	if err := checkKind(kind); err != nil {
		return berth.Name{}, err
	}
	n, err := r.read.Name(ctx, kind, name)
	if err != nil {
		return n.Name, err
	}
	dead, _ := r.dead(ctx, probable(&n)) // without the right to ask, no node counts as dead
	all, err := r.read.Notice(ctx, kind)
	return named(&n, all, dead), err
}

// notices are what operators have said of a pause of all names of kinds. Beside an error there are those of the others.
func (r *Reader) notices(ctx context.Context, kinds []keyspace.Kind) (map[keyspace.Kind]notice.Field, error) {
	var (
		mu    sync.Mutex
		reads sync.WaitGroup
		errs  []error
		found = map[keyspace.Kind]notice.Field{}
	)
	for _, kind := range kinds {
		reads.Go(func() {
			all, err := r.read.Notice(ctx, kind)
			mu.Lock()
			defer mu.Unlock()
			found[kind], errs = all, append(errs, err)
		})
	}
	reads.Wait()
	return found, reader.Joined(errs...)
}
