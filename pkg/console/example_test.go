package console_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/berth-go/berth/pkg/console"
	"github.com/berth-go/berth/pkg/embedded"
)

// The page in a program of one's own, below a prefix. Who is an operator may act; everybody who is logged in may look.
func Example() {
	server, err := embedded.Start() // yours is a Redis or Valkey
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	redis, err := server.Client()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer redis.Close()

	page, err := console.New(console.Config{
		Redis: redis, AllowActions: true,
		Access: func(r *http.Request) console.Access {
			user, operator := sessionOf(r)
			return console.Access{User: user, Look: user != "", Act: operator}
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = page.Close(context.Background()) }()
	mux := http.NewServeMux()
	mux.Handle("/berth/", http.StripPrefix("/berth", page))

	r := httptest.NewRequest(http.MethodGet, "/berth/", nil)
	r.Header.Set("Session", "anna")
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	fmt.Println(w.Code, strings.Contains(w.Body.String(), "Nobody waits for anything."))
	// Output: 200 true
}

// sessionOf is the host program's: it knows its users.
func sessionOf(r *http.Request) (user string, operator bool) {
	user = r.Header.Get("Session")
	return user, user == "anna"
}
