package fence_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/berth-go/berth/pkg/fence"
)

// page is a resource that a mutex guards anyway.
type page struct {
	guard fence.Memory
	mu    sync.Mutex
	text  string // guarded by mu
}

func (p *page) publish(ctx context.Context, number int64, text string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.guard.Admit(ctx, "page", number); err != nil {
		return err
	}
	p.text = text
	return nil
}

// If a mutex guards the resource, call Admit under the mutex.
func ExampleMemory_Admit() {
	ctx := context.Background()
	var front page
	fmt.Println(front.publish(ctx, 12, "new"))
	err := front.publish(ctx, 11, "old")
	fmt.Println(err)
	var stale *fence.StaleError
	fmt.Println(errors.As(err, &stale), stale.Greatest, front.text)
	// Output:
	// <nil>
	// berth: stale fence for "page": 11, after 12 was admitted
	// true 12 new
}
