package demo

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/cmd/berth/internal/app"
)

func TestADemoThatCannotBePlayedFails(t *testing.T) {
	var out, errs bytes.Buffer
	a := app.New(&out, &errs)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.Equal(t, 1, app.CodeOf(play(ctx, a, false)))
}
