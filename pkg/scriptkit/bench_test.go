package scriptkit

import (
	"context"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

// BenchmarkRun compares Run with rueidis's own script runner, which has no time
// limit and reads no reply. The server is in memory and does nothing.
func BenchmarkRun(b *testing.B) {
	s := simple(b)
	keys, args := []string{"{gpu}:state"}, []string{"1"}
	client := newFakeServer(b, func(int, []string) string { return "*2\r\n$2\r\nok\r\n:7\r\n" }).client(b)

	b.Run("rueidis", func(b *testing.B) {
		lua := rueidis.NewLuaScript(s.Source())
		b.ReportAllocs()
		for b.Loop() {
			require.NoError(b, lua.Exec(context.Background(), client, keys, args).Error())
		}
	})
	runner := NewRunner(client, Options{})
	measure := func(ctx context.Context) func(b *testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r, err := runner.Run(ctx, s, Bounded, keys, args)
				if err != nil || r.Int(1) != 7 {
					b.Fatal(r, err)
				}
			}
		}
	}
	b.Run("a context that never ends", measure(context.Background()))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	b.Run("a context that may end", measure(ctx))
}
