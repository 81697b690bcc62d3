package app

import (
	"context"
	"fmt"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/view"
	"github.com/berth-go/berth/pkg/inspect"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/once"
)

// RunsDocument is what is kept of the runs of a name.
type RunsDocument struct {
	berth.Name
	Once *once.Last `json:"once"` // nil: nothing is kept
}

// RunsOf reads what is kept of the runs of a name.
func RunsOf(ctx context.Context, n *node.Node, read *inspect.Reader, name string) (d RunsDocument, err error) {
	if d.Name, err = read.Runs(ctx, name); err != nil || d.Runs == nil {
		return d, err
	}
	last, err := once.New(n, name, once.Config{Every: time.Hour}).Last(ctx) // Last goes by the name alone
	if err != nil {
		return d, err
	}
	if run := last.Run; run != nil {
		d.Runs.GoesOn = run.Outcome == once.Begun && (d.Runs.GoesOn || run.Fence != d.Runs.Fence) // it has begun since
	}
	d.Once = &last
	return d, nil
}

// Says says what became of the runs.
func (d *RunsDocument) Says() string {
	run, success := d.Once.Run, d.Once.Success
	says := view.Run(success, d.Runs.GoesOn)
	if run != nil && success != nil && run.Fence == success.Fence {
		says = "this run"
	}
	return fmt.Sprintf("Newest run: %s\nNewest success: %s", view.Run(run, d.Runs.GoesOn), says)
}
