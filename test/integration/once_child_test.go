package integration

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/once"
)

// onceServant is a child that runs a name once in each hour. It takes
//
//	do  run order.Name, which takes order.By and then writes its period and its fence to the file
//	    order.Path; wait where somebody else is at it
type onceServant struct{ node *node.Node }

// manyAttempts are more than a test kills.
var manyAttempts = once.Config{Every: time.Hour, Attempts: 1000, Wait: true}

func (c *onceServant) carryOut(ctx context.Context, o order, a *answer) error {
	result, err := once.New(c.node, o.Name, manyAttempts).Do(ctx, func(_ context.Context, run *once.Run) error {
		<-time.After(o.By) // it heeds no context
		return note(o.Path, run)
	})
	a.Got, a.Fence, a.Claim = string(result.Status), result.Fence, result.Period.String()
	return err
}

// note writes a success down, at once.
func note(path string, run *once.Run) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	_, err = fmt.Fprintf(file, "%s %d\n", run.Period(), run.Fence())
	return err
}
