// Package console is a page that shows what contends: names, claims, nodes, pools and cycles, live, in a browser. It is
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
// Config.Access says of each request who asks, whether they may look, and whether they may act. Without it whoever reaches
// the handler may look and, if Config.AllowActions is set, act: on a loopback address that is every user and every program
// of the machine. That is for a machine of one's own, or for a handler that stands behind an authentication of the host
// program. Without Access the page answers to "localhost" and to IP addresses alone: a site whose name was made to lead
// here could act otherwise, in the browser of somebody who visits it. See Config.Hosts.
//
// An action is a form of the same site, with a token of the same session; what another site sends is refused. A form is
// done once, however often it is sent. Whoever may act sees what the others have done, and why; whoever may only look
// does not, nor where the server is.
//
// # What it does not do
//
// It knows no users and no passwords, and speaks no TLS: that is the host program's, or a proxy's. It keeps no history
// beyond what was seen since somebody looks. Its sessions, and what was done, are of one process: in front of several, a
// balancer must lead a browser to the same one each time.
package console
