package main

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/berth-go/berth/pkg/allocator"
	"github.com/berth-go/berth/pkg/berthtest"
	"github.com/berth-go/berth/pkg/node"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// service is what all replicas post to.
type service struct {
	mu    sync.Mutex
	busy  map[string]bool      // guarded by mu, by account
	ended map[string]time.Time // guarded by mu, by account: its last use
}

// post takes a second. It returns an error for an account that is in use, or has not rested.
func (s *service) post(_ context.Context, account string) error {
	if err := s.begin(account); err != nil {
		return err
	}
	<-time.After(time.Second)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy[account], s.ended[account] = false, time.Now()
	return nil
}

func (s *service) begin(account string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	last, again := s.ended[account]
	switch rested := time.Since(last); {
	case s.busy[account]:
		return fmt.Errorf("%s is used by two", account)
	case again && rested < 30*time.Second-time.Millisecond: // the server counts whole ones
		return fmt.Errorf("%s has rested for %s", account, rested)
	}
	s.busy[account] = true
	return nil
}

// In virtual time: three customers post five times each, all at once, each time from another
// process. Some account is always free, but it is not theirs.
func TestACustomerKeepsHisAccountAndItRestsBetweenHisPosts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, service := berthtest.New(t), &service{busy: map[string]bool{}, ended: map[string]time.Time{}}
		pool := allocator.New(server.Node(node.Config{}), "accounts", allocator.Config[string]{})
		_, err := pool.Add(t.Context(), []string{"one", "two", "three", "four"}, nil)
		require.NoError(t, err)
		customers := []string{"anna", "ben", "cleo"}
		first := make([]string, len(customers)) // the account of each
		for round := range 5 {
			began := time.Now()
			var posts sync.WaitGroup
			for i, customer := range customers {
				n := server.Node(node.Config{})
				posts.Go(func() {
					err := serve(t.Context(), n, customer, func(ctx context.Context, account string) error {
						if first[i] = cmp.Or(first[i], account); account != first[i] {
							return fmt.Errorf("it is %s, and was %s", account, first[i])
						}
						return service.post(ctx, account)
					})
					if err != nil {
						t.Errorf("%s, round %d: %s", customer, round, err)
					}
				})
			}
			posts.Wait()
			took := time.Second
			if round > 0 {
				took += 30 * time.Second
			}
			require.Equal(t, took, time.Since(began).Round(100*time.Millisecond))
		}
		require.Len(t, service.ended, len(customers))
	})
}
