// Package console is a page that shows what contends: names, claims, nodes, pools and circles, live, in a browser. It is
// an http.Handler to mount in a program of one's own; `berth web` serves it alone.
//
//	page, err := console.New(console.Config{Redis: redis})
//	mux.Handle("/berth/", http.StripPrefix("/berth", page))
//
// However many browsers look, the server is read once: an open name at most once a second, the overview at most once in
// two seconds, and nothing at which nobody looks. A page that is open is kept up to date by server-sent events; up to
// Config.MaxStreams are live at once. Without scripts a page shows how things stood when it was loaded.
//
// # Who looks, who acts
//
// Without Config.Access everybody who reaches the handler may look. That is for a loopback address, or for a handler
// that stands behind an authentication of its own. Nobody may act unless Config.AllowActions is set and Access says so.
// An action is a form of the same site, with a token of the same session; what another site sends is refused.
//
// # What it does not do
//
// It knows no users and no passwords, and speaks no TLS: that is the host program's, or a proxy's. It keeps no history
// beyond what was seen since somebody looks.
package console
