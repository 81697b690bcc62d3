package inspect

import (
	"fmt"
	"testing"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/keyspace"
)

// crowded is a name with 100 holds and 100 waiting claims, of a pool 100 that wait for one resource beside them.
func crowded(kind keyspace.Kind, bound bool) *snapshot {
	at := time.UnixMilli(1_700_000_000_000)
	s := &snapshot{Kind: kind, Namespace: "berth", Name: "gpu", At: at, Known: true, Capacity: 100, Held: 100, Waiting: 100, Server: &server{}}
	if kind == keyspace.Pool {
		s.Pool, s.Items = &pool{Resources: 100, Leased: 100, Filled: true}, map[string]item{}
	}
	for i := range 100 {
		resource, node := "", fmt.Sprintf("node%d", i)
		if kind == keyspace.Pool {
			resource = fmt.Sprintf("resource%d", i)
			s.Items[resource] = item{Max: 1, Holders: []string{fmt.Sprintf("h%d.1", i)}}
		}
		end := at.Add(time.Duration(6000+i) * time.Millisecond)
		s.Holds = append(s.Holds, hold{
			Holder:   berth.Holder{ID: fmt.Sprintf("h%d.1", i), Node: node, Label: "worker", Owner: "one", Weight: 1, Lease: 10 * time.Second, Resource: resource, Granted: at.Add(-time.Minute)},
			Deadline: end, Phase: 'h', Wait: 10 * time.Second,
		})
		w := wait{
			Waiter: berth.Waiter{ID: fmt.Sprintf("w%d.1", i), Node: "w" + node, Label: "worker", Weight: 1, Since: at.Add(-time.Second), Ahead: i},
			Lane:   256, Place: fmt.Sprintf("%013d", at.UnixMilli()+int64(i)), Heard: at.Add(-time.Second), WaitLease: 10 * time.Second,
		}
		s.Line = append(s.Line, w)
		if kind == keyspace.Pool {
			w.ID, w.Resource, w.Named, w.Ahead = w.ID+"0", resource, true, 0
			if bound {
				w.Named, w.Bind, w.Until = false, "customer", at.Add(time.Duration(10+i)*time.Second)
			}
			s.Lanes = append(s.Lanes, w)
		}
	}
	if kind == keyspace.Lock {
		s.Capacity, s.Held, s.Holds = 1, 100, s.Holds[:100]
	}
	return s
}

// What a View computes of a name with as many claims as it reads.
func BenchmarkLook(b *testing.B) {
	for _, kind := range kindsOf {
		for _, bound := range []bool{false, true} {
			if bound && kind != keyspace.Pool {
				continue
			}
			b.Run(fmt.Sprintf("%s,bound=%t", kind, bound), func(b *testing.B) {
				s := crowded(kind, bound)
				for b.Loop() {
					s.look(Name{})
				}
			})
		}
	}
}
