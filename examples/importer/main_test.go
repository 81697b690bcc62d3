package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth/pkg/berthtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Three processes, in virtual time: the one that leads imports the sources, and when it has ended the next one does.
func TestOneProcessImportsAndThenTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, imported := berthtest.New(t), make(chan int)
		var stops []context.CancelFunc
		ended := make(chan error)
		for i := range 3 {
			ctx, stop := context.WithCancel(t.Context())
			stops = append(stops, stop)
			redis := server.Client()
			go func() {
				ended <- run(ctx, redis, work{sources: []string{"anna", "ben"}, done: func() { imported <- i }})
			}()
			<-time.After(time.Second)
		}
		for i, stop := range stops {
			require.Equal(t, i, <-imported)
			stop()
			require.NoError(t, <-ended)
		}
	})
}
