package torture

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/test/harness"
	"github.com/berth-go/berth/test/torture/history"
)

// passwordOfRound is what all workers show, and any server without a password takes.
const passwordOfRound = "worker"

// ofRefusals have a master refuse for a while what it did before: its snapshots fail, or it has another password.
var ofRefusals = []*fault{
	passing("snapshots fail (MISCONF)", func(r *round) func() {
		var end []func()
		for _, s := range r.world.d.Masters(r) {
			end = append(end, r.failSnapshots(s))
		}
		return func() {
			for _, one := range end {
				one()
			}
		}
	}),
	passing("password changed, and back (WRONGPASS)", func(r *round) func() {
		end := r.tellFor([]string{"ACL", "SETUSER", "default", "resetpass", ">another"}, "ACL", "SETUSER", "default", "nopass")
		r.tell("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes") // who is in stays in
		return end
	}),
}

// demoted is a master that stands alone and becomes a replica of nobody.
var demoted = passing("master made a replica, and back (READONLY)", func(r *round) func() {
	return r.tellFor([]string{"REPLICAOF", "127.0.0.1", "1"}, "REPLICAOF", "NO", "ONE")
})

// passing is a fault that passes by itself, as far as anybody knows.
func passing(name string, refuse func(*round) (end func())) *fault {
	return &fault{
		name: name, ofServer: true, least: 300 * time.Millisecond, most: 1500 * time.Millisecond,
		begin: func(r *round, record *history.Fault) func() {
			record.Passes = true
			return refuse(r)
		},
	}
}

// failSnapshots has something in the way of a server's snapshots, until the end.
func (r *round) failSnapshots(s *harness.Server) (end func()) {
	r.Helper()
	client := r.world.direct(r, s)
	dir, err := client.Do(r.within(auditLimit), client.B().ConfigGet().Parameter("dir").Build()).AsStrMap()
	require.NoError(r, err)
	inTheWay := filepath.Join(dir["dir"], "dump.rdb")
	require.NoError(r, os.Mkdir(inTheWay, 0o755))
	r.order(s, "CONFIG", "SET", "save", "3600 1000000")
	require.Eventually(r, func() bool {
		_ = client.Do(r.within(auditLimit), client.B().Bgsave().Build()).Error() // another one may be on its way
		text, err := client.Do(r.within(auditLimit), client.B().Info().Section("persistence").Build()).ToString()
		return err == nil && slices.Contains(strings.Fields(text), "rdb_last_bgsave_status:err")
	}, auditLimit, 5*time.Millisecond, "no snapshot fails at "+s.Addr)
	return func() {
		require.NoError(r, os.Remove(inTheWay))
		r.order(s, "SAVE") // it waits for its turn
		r.order(s, "CONFIG", "SET", "save", "")
		require.NoError(r, os.Remove(inTheWay))
	}
}
