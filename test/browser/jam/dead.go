package jam

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/keyspace"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/qlock"
	"github.com/berth-go/berth/pkg/semaphore"
)

// variable makes this program the process that is killed.
const variable = "BERTH_JAM_DIES"

// Dies must be called first by a program that makes a jam: in a process that was started to be killed it does not
// return.
func Dies() {
	text := os.Getenv(variable)
	if text == "" {
		return
	}
	var cfg Config
	err := json.Unmarshal([]byte(text), &cfg)
	if err == nil {
		err = live(cfg)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "the process that is to be killed:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// live takes what is found after its death, says so, and waits for it.
func live(cfg Config) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	option, err := rueidis.ParseURL(cfg.URL)
	if err != nil {
		return err
	}
	option.DisableCache = true
	redis, err := rueidis.NewClient(option)
	if err != nil {
		return err
	}
	const label = "trainer-9@rack-4"
	// It calls three times in two seconds, and holds for an hour: soon overdue, and there for long.
	n, err := node.New(redis, node.Config{
		Namespace: cfg.Namespace, Label: label, Lease: 2 * time.Second,
		Swarm: node.SwarmConfig{ProbeEvery: time.Second, ZombieAfter: 3 * time.Second, FlushEvery: -1},
	})
	if err != nil {
		return err
	}
	gpu, locks := semaphore.New(n, Full, 8, semaphore.Config{}), qlock.New(n, qlock.Config{Lease: 2 * time.Second})
	permit := func() (renewed, error) {
		return gpu.Acquire(berth.WithOwner(ctx, "train/resnet-50"), &semaphore.AcquireOptions{Lease: time.Hour, Meta: map[string]string{"ticket": "ML-1040"}})
	}
	night := func() (renewed, error) { return locks.Lock(ctx, Endless, &qlock.LockOptions{Lease: berth.Forever}) }
	if err := errors.Join(n.Swarm().Start(ctx), confirmed(ctx, permit), confirmed(ctx, night)); err != nil {
		return err
	}
	_, _ = fmt.Fprintln(os.Stdout, n.ID())
	_, err = io.Copy(io.Discard, os.Stdin) // until whoever started it has gone
	return err
}

// renewed is a hold that is renewed by hand.
type renewed interface {
	Renew(ctx context.Context) error
}

// confirmed takes a hold and renews it, so that its own lease runs: again where the wait lease has ended before, as
// the machine had others to run.
func confirmed(ctx context.Context, take func() (renewed, error)) (err error) {
	for again := true; again; again = errors.Is(err, berth.ErrNotHeld) {
		var held renewed
		if held, err = take(); err == nil {
			err = held.Renew(ctx)
		}
	}
	return err
}

// dies starts a process, and kills it when it has what it wants.
func (j *Jam) dies(ctx context.Context) error {
	text, err := json.Marshal(j.cfg)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), variable+"="+string(text))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	node, err := bufio.NewReader(out).ReadString('\n')
	j.Dead = strings.TrimSpace(node)
	err = errors.Join(err, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	return err
}

// overdue waits until the server's readers know that the one that was killed is silent.
func (j *Jam) overdue(ctx context.Context) error {
	for {
		e, err := j.read.Explain(ctx, keyspace.Sem, Full, "")
		if err != nil {
			return err
		}
		for _, c := range e.Blockers {
			if c.Node() == j.Dead && c.Process == inspect.Overdue {
				return nil
			}
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("the process that was killed is never overdue: %w; %s", context.Cause(ctx), e)
		}
	}
}
