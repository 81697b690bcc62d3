package rolling

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/internal/tools/compose"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/scriptkit"
	"github.com/berth-go/berth/scripts/composed"
	"github.com/berth-go/berth/test/harness"
)

func TestZZ(t *testing.T) {
	dir := os.Getenv("TRACES")
	if dir == "" {
		t.Skip()
	}
	server, err := embedded.Start()
	require.NoError(t, err)
	defer server.Close()
	mem, err := server.Client()
	require.NoError(t, err)
	defer mem.Close()
	oldFiles := os.DirFS(os.Getenv("OLD"))
	oldS, err := compose.ParseOld(oldFiles)
	require.NoError(t, err)
	old, now := oldS.Library(), composed.Library()
	clients := map[string]rueidis.Client{"embedded": mem, "redis": harness.Shared(t).Client(t), "valkey": harness.Valkey(t).Client(t), "cluster": harness.NewCluster(t)}
	_ = fmt.Sprint
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	calls := 0
	byScript := map[string]int{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		var tape []sentCall
		for _, line := range bytes.Split(raw, []byte("\n")) {
			var e struct {
				At         int64
				Script     string
				Keys, Args []string
			}
			if json.Unmarshal(line, &e) == nil && len(e.Keys) > 0 {
				tape = append(tape, sentCall{time.UnixMicro(e.At), e.Script, e.Keys, e.Args})
				byScript[e.Script]++
			}
		}
		if len(tape) == 0 {
			continue
		}
		calls += len(tape)
		for name, client := range clients {
			a := (&player{client, old}).play(t, tape)
			b := (&player{client, now}).play(t, tape)
			require.Equal(t, a, b, "%s %s", name, file)
		}
	}
	t.Log(calls, byScript)
}

var _ *scriptkit.Library
