// Package console is a web page that shows names, claims, nodes, pools and cycles, live, in a browser. A [Console] is an
// http.Handler to mount in your own program; the command `berth web` serves it alone.
//
//	page, err := console.New(console.Config{Redis: redis})
//	mux.Handle("/berth/", http.StripPrefix("/berth", page))
//
// All browsers share the readings of the server: an open name is read at most once a second, the overview at most once in two
// seconds, and nothing that no browser shows. Server-sent events update an open page; up to Config.MaxStreams pages are live at
// once. Without scripts a page shows the state at the time it was loaded.
//
// # Access
//
// Config.Access decides for each request who asks, whether this user may look, and whether this user may act. Without Access,
// everybody who reaches the handler may look and, if Config.AllowActions is set, act. On a loopback address these are all users
// and all programs of the machine, so leave Access out only on your own machine, or behind the authentication of the host program.
// Without Access the page answers only to "localhost" and to IP addresses. Otherwise a foreign site, whose name leads here, could
// act in the browser of its visitor; see Config.Hosts.
//
// An action is a form of the same site, with a token of the same session; forms from other sites are refused. A form is executed
// once, however often it is sent. Users who may act see the actions of others and their reasons, and the server's address. Users
// who may only look see neither.
//
// # Limits
//
// The console has no users, passwords or TLS; the host program or a proxy must provide these. The console keeps no history, except
// of the time in which somebody looks. Sessions and past actions belong to one process: with several processes, a load balancer
// must send a browser to the same process each time.
package console
