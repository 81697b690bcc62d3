package harness

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
)

// watched is what Sentinel watches over.
type watched struct {
	sentinels []*Server
}

const (
	masterSet = "berth"
	replicas  = 2
	sentinels = 3
	quorum    = "2"

	// Milliseconds without an answer until a Sentinel takes a server for down: as
	// a rule, and while it is known that one is.
	patience, noPatience = "5000", "500"

	failoverTimeout = "3000"
)

// Sentinel is a master with two replicas under three Sentinels, two of which must
// agree, all processes. A master that does not answer for 5 s is failed over, so
// that a machine that is busy alone does not lead to it; Failover is sooner.
// Sentinels tell each other and ask the servers more often than they do by
// default, so that a master that was replaced but runs on follows the new one
// after about 2 s instead of 8 s.
func Sentinel(t testing.TB) *Deployment {
	t.Helper()
	master := one(t, replicated(""))
	d := &Deployment{Name: "sentinel", spec: Spec{MasterSet: masterSet}, servers: []*Server{master}, sentinel: &watched{}}
	for range replicas {
		d.servers = append(d.servers, one(t, replicated(master.Addr)))
	}
	// Sentinel asks a master for its replicas at once, and then not for a while.
	until(t, "replicas", func(ctx context.Context) error { return d.inSync(ctx, []*Server{master}) })
	for range sentinels {
		s := one(t, program{binary: "redis-server", args: []string{"--sentinel"}, config: watching(master.Addr)})
		d.sentinel.sentinels = append(d.sentinel.sentinels, s)
		d.spec.Addresses = append(d.spec.Addresses, s.Addr)
		until(t, "setting up a Sentinel", func(ctx context.Context) error {
			return order(ctx, s, "SENTINEL", "DEBUG", "INFO-PERIOD", "500", "PUBLISH-PERIOD", "500")
		})
	}
	until(t, "Sentinels that know each other", d.watchedOver)
	return d
}

// replicated is a server that can be told whom to follow. Its configuration file
// says whom it follows at first, "" for nobody.
func replicated(master string) program {
	return program{binary: "redis-server", config: following(master), args: []string{
		"--repl-diskless-sync-delay", "0",
		"--rdb-del-sync-files", "yes", // what is killed keeps nothing
	}}
}

func following(master string) string {
	if master == "" {
		return "# follows nobody\n"
	}
	return "replicaof " + strings.Replace(master, ":", " ", 1) + "\n"
}

func watching(master string) string {
	at := strings.Replace(master, ":", " ", 1)
	return "sentinel monitor " + masterSet + " " + at + " " + quorum + "\n" +
		"sentinel down-after-milliseconds " + masterSet + " " + patience + "\n" +
		"sentinel failover-timeout " + masterSet + " " + failoverTimeout + "\n"
}

// current is the master that all Sentinels name.
func (d *Deployment) current(ctx context.Context) (*Server, error) {
	var master string
	for _, s := range d.sentinel.sentinels {
		addr, err := named(ctx, s)
		if err != nil {
			return nil, err
		}
		if master != "" && addr != master {
			return nil, fmt.Errorf("the Sentinels name both %s and %s as master", master, addr)
		}
		master = addr
	}
	return d.at(master)
}

// named is the address of the master that one Sentinel names.
func named(ctx context.Context, s *Server) (string, error) {
	at, err := ask(ctx, s.Addr, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", masterSet).AsStrSlice()
	if err != nil {
		return "", err
	}
	if len(at) != 2 {
		return "", fmt.Errorf("the Sentinel at %s names no master", s.Addr)
	}
	return net.JoinHostPort(at[0], at[1]), nil
}

// leading is the master that all Sentinels name, if it takes writes.
func (d *Deployment) leading(ctx context.Context) (*Server, error) {
	s, err := d.current(ctx)
	if err != nil {
		return nil, err
	}
	return s, takesWrites(ctx, s, "berth")
}

// watchedOver says why the master could not be failed over: a running replica is
// not in sync, or a Sentinel does not know all servers, takes a running one for
// down, or is still at an earlier failover.
func (d *Deployment) watchedOver(ctx context.Context) error {
	master, err := d.leading(ctx)
	if err != nil {
		return err
	}
	if err := d.inSync(ctx, []*Server{master}); err != nil {
		return err
	}
	for _, s := range d.sentinel.sentinels {
		if err := d.knowsAll(ctx, s); err != nil {
			return fmt.Errorf("the Sentinel at %s: %w", s.Addr, err)
		}
	}
	return nil
}

func (d *Deployment) knowsAll(ctx context.Context, s *Server) error {
	state, err := ask(ctx, s.Addr, "SENTINEL", "MASTER", masterSet).AsStrMap()
	if err != nil {
		return err
	}
	if state["flags"] != "master" || state["num-other-sentinels"] != strconv.Itoa(sentinels-1) {
		return fmt.Errorf("the master is %s, other Sentinels are %s", state["flags"], state["num-other-sentinels"])
	}
	list, err := ask(ctx, s.Addr, "SENTINEL", "REPLICAS", masterSet).ToArray()
	if err != nil {
		return err
	}
	if len(list) != replicas {
		return fmt.Errorf("%d replicas", len(list))
	}
	for _, entry := range list {
		replica, err := entry.AsStrMap()
		if err != nil {
			return err
		}
		server, err := d.at(net.JoinHostPort(replica["ip"], replica["port"]))
		if err != nil {
			return err
		}
		if server.PID() != 0 && (replica["flags"] != "slave" || replica["master-link-status"] != "ok") {
			return fmt.Errorf("the replica %s is %s, its link %s", server.Addr, replica["flags"], replica["master-link-status"])
		}
	}
	return nil
}

func (d *Deployment) master(t testing.TB) *Server {
	t.Helper()
	var master *Server
	until(t, "the master that Sentinel names", func(ctx context.Context) (err error) {
		master, err = d.leading(ctx)
		return err
	})
	return master
}

// Failover kills the master, as SIGKILL does, once its replicas have what it has,
// and returns when another one takes writes in its place for good: one Sentinel may
// have begun a failover of its own beside that of another, and what was written in
// between is lost. Rejoin brings the killed one back. It is for Sentinel.
func (d *Deployment) Failover(t testing.TB) {
	t.Helper()
	d.replace(t, func(old *Server) {
		old.Kill(t)
		d.beware(t, noPatience)
		until(t, "noticing that "+old.Addr+" is killed", func(ctx context.Context) error { return d.noticed(ctx, old) })
		d.beware(t, patience)
	})
	until(t, "Sentinels that are done with the failover", d.watchedOver)
}

// noticed is nil once a Sentinel names another master than the old one.
func (d *Deployment) noticed(ctx context.Context, old *Server) error {
	for _, s := range d.sentinel.sentinels {
		now, err := named(ctx, s)
		if err != nil {
			return err
		}
		if now != old.Addr {
			return nil
		}
	}
	return errors.New("no Sentinel names another master")
}

// beware sets for how long the Sentinels wait for an answer.
func (d *Deployment) beware(t testing.TB, ms string) {
	t.Helper()
	for _, s := range d.sentinel.sentinels {
		until(t, "setting up a Sentinel", func(ctx context.Context) error {
			return order(ctx, s, "SENTINEL", "SET", masterSet, "DOWN-AFTER-MILLISECONDS", ms)
		})
	}
}

// Switchover has Sentinel make another server the master while the old one runs,
// and returns when the new one takes writes. The old one takes writes too, which
// are lost, until Sentinel has it follow the new one about 2 s later; Rejoin waits
// for that. It is for Sentinel.
func (d *Deployment) Switchover(t testing.TB) {
	t.Helper()
	d.replace(t, func(*Server) {
		until(t, "SENTINEL FAILOVER", func(ctx context.Context) error {
			return order(ctx, d.sentinel.sentinels[0], "SENTINEL", "FAILOVER", masterSet)
		})
	})
}

func (d *Deployment) replace(t testing.TB, begin func(old *Server)) {
	t.Helper()
	if d.sentinel == nil {
		t.Fatalf("no Sentinel watches over the %s deployment", d.Name)
	}
	if len(d.running()) < 2 {
		t.Fatalf("no replica runs that could become the master: Rejoin first")
	}
	until(t, "a master that can be replaced", d.watchedOver)
	old := d.master(t)
	begin(old)
	until(t, "failing over "+old.Addr, func(ctx context.Context) error {
		now, err := d.leading(ctx)
		if err == nil && now == old {
			err = errors.New("it is still the master")
		}
		return err
	})
}

func (d *Deployment) sentinelRejoin(t testing.TB) {
	t.Helper()
	master := d.master(t)
	d.revive(t, func(p *process) error { return p.configure(following(master.Addr)) })
	until(t, "joining the master again", d.watchedOver)
}
