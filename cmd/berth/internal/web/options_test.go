package web

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/berth-go/berth/cmd/berth/internal/app"
	"github.com/berth-go/berth/pkg/console"
)

func TestWhoIsBelieved(t *testing.T) {
	o := options{listen: "0.0.0.0:80", actions: true, userHeader: "X-User", proxies: []string{"10.0.0.2", "fd00::/8", "192.168.1.0/24"}, names: []string{"ops.example.org"}}
	require.NoError(t, o.check())
	require.Equal(t, []string{"localhost", "ops.example.org"}, app.Hosts(o.names), "a header is no proof: a site that was made to lead here can set it")
	look := o.access()
	anna := console.Access{User: "anna", Look: true, Act: true}
	for _, tt := range []struct {
		from  string
		users []string
		want  console.Access
	}{
		{"10.0.0.2:4711", []string{"anna"}, anna},
		{"[::ffff:10.0.0.2]:4711", []string{"anna"}, anna},
		{"[fd12::1]:4711", []string{"anna"}, anna},
		{"192.168.1.77:1", []string{"anna"}, anna},
		{"192.168.2.77:1", []string{"anna"}, console.Access{}},
		{"10.0.0.3:4711", []string{"anna"}, console.Access{}},
		{"127.0.0.1:4711", []string{"anna"}, console.Access{}},
		{"10.0.0.2:4711", nil, console.Access{}},
		{"10.0.0.2:4711", []string{""}, console.Access{}},
		{"10.0.0.2:4711", []string{"anna", "bert"}, console.Access{}},
		{"@", []string{"anna"}, console.Access{}},
	} {
		r := &http.Request{RemoteAddr: tt.from, Header: http.Header{"X-User": tt.users}}
		require.Equal(t, tt.want, look(r), "%+v", tt)
	}
}

func TestOnTheLoopbackEverybodyIsBelieved(t *testing.T) {
	for _, listen := range []string{"127.0.0.1:0", "localhost:8080", "[::1]:80"} {
		o := options{listen: listen, actions: true}
		require.NoError(t, o.check())
		require.Nil(t, o.access())
		require.Equal(t, []string{"localhost"}, app.Hosts(o.names), "another site's name is refused")
	}
}

func TestFlagsThatAreRefused(t *testing.T) {
	for _, o := range []options{
		{listen: "8080"},
		{listen: ":8080", actions: true},
		{listen: "0.0.0.0:8080", actions: true},
		{listen: "10.0.0.5:8080", actions: true},
		{listen: "10.0.0.5:8080", actions: true, userHeader: "X-User"},
		{listen: "127.0.0.1:8080", names: []string{""}},
		{listen: "127.0.0.1:8080", names: []string{"http://ops.example.org"}},
		{listen: "127.0.0.1:8080", names: []string{"ops.example.org:80"}},
		{listen: "127.0.0.1:8080", proxies: []string{"10.0.0.2"}},
		{listen: "127.0.0.1:8080", userHeader: "X-User", proxies: []string{"proxy"}},
		{listen: "127.0.0.1:8080", userHeader: "X-User", proxies: []string{"10.0.0.0/33"}},
	} {
		require.Error(t, o.check(), "%+v", o)
	}
	o := options{listen: ":8080"}
	require.NoError(t, o.check(), "read-only it may be seen")
}
