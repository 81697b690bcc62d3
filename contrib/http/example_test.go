package berthhttp_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	berthhttp "github.com/berth-go/berth/contrib/http"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/semaphore"
)

// render works for long. When its permit or its client is gone it stops, and says so.
func render(w http.ResponseWriter, r *http.Request) {
	select {
	case <-time.After(50 * time.Millisecond):
		fmt.Fprint(w, "a picture")
	case <-r.Context().Done():
		http.Error(w, "stopped", http.StatusServiceUnavailable)
	}
}

// At most two pictures are rendered at once, however many processes serve. A third request
// waits for 3 s; then its client is told when to come again.
func ExampleLimit() {
	server, err := embedded.Start()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	redis, err := server.Client()
	if err != nil {
		panic(err)
	}
	defer redis.Close()
	ctx := context.Background()
	n, err := node.New(redis, node.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = n.Close(ctx) }()

	sem := semaphore.New(n, "render", 2, semaphore.Config{})
	limit, err := berthhttp.Limit(sem, &berthhttp.Options{MaxWait: 3 * time.Second, RetryAfter: 5 * time.Second})
	if err != nil {
		panic(err)
	}
	handler := limit(http.HandlerFunc(render))

	// Two others are served at the moment, perhaps elsewhere.
	for range 2 {
		if _, err := sem.Acquire(ctx, nil); err != nil {
			panic(err)
		}
	}
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/render", nil))
	fmt.Println(answer.Code, answer.Header().Get("Retry-After"), answer.Body)
	// Output:
	// 503 5 too many requests are served at the moment
}

// Each tenant has a semaphore of its own, and health checks have none. The number of names is
// bounded, whatever strangers send.
func ExampleLimitBy() {
	server, err := embedded.Start()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	redis, err := server.Client()
	if err != nil {
		panic(err)
	}
	defer redis.Close()
	n, err := node.New(redis, node.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = n.Close(context.Background()) }()

	limit, err := berthhttp.LimitBy(func(r *http.Request) (*semaphore.Semaphore, error) {
		if r.URL.Path == "/healthz" {
			return nil, nil
		}
		return semaphore.New(n, "tenant:"+berthhttp.Bucket(r.Header.Get("Tenant"), 4096), 2, semaphore.Config{}), nil
	}, &berthhttp.Options{MaxWait: time.Minute})
	if err != nil {
		panic(err)
	}
	handler := limit(http.HandlerFunc(render))

	request := httptest.NewRequest(http.MethodGet, "/render", nil)
	request.Header.Set("Tenant", "{anything}\n")
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, request)
	fmt.Println(answer.Code, answer.Body)
	// Output:
	// 200 a picture
}
