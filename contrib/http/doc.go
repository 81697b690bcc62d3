// Package berthhttp limits how many HTTP requests are served at once, across all processes. It
// is net/http middleware on a semaphore of Berth.
//
//	n, err := node.New(redis, node.Config{})
//	limit, err := berthhttp.Limit(semaphore.New(n, "render", 20, semaphore.Config{}), nil)
//	mux.Handle("/render", limit(http.HandlerFunc(serve)))
//
// [Limit] uses one semaphore for all requests, [LimitBy] chooses a semaphore for each request.
// A request waits in line for its permit, is served, and gives its permit back when its handler
// returns or panics. A request that gets no permit is answered 503 (Service Unavailable), with
// a Retry-After header. If the function of LimitBy fails, the answer is 500 (Internal Server
// Error), without that header.
//
// # The line
//
// Two limits keep the line short. Options.MaxWait limits how long a request waits, whatever
// other processes do. Options.MaxWaiting limits how many requests of this process wait for one
// semaphore, since each waiting request costs memory and a connection. If MaxWaiting requests
// already wait, a request is refused at once, without a call to the server. So the whole line
// is at most MaxWaiting times the number of processes.
//
// A request whose client goes away, or whose context ends for another reason, leaves the line
// at once. (Over HTTP/1 net/http sees a client go away only after the body of its request has
// been read.) Requests are served in the order in which they first reached the server. Priority
// and Weight are options of the semaphore: pass them to semaphore.New as defaults.
//
// # The permit
//
// The context of the request ends with its permit. The cause, by context.Cause, then matches
// berth.ErrLost, berth.ErrExpired (a MaxHold) or berth.ErrReleased (an operator). A handler
// that does not check its context runs on, one above the capacity.
//
// The middleware passes the http.ResponseWriter on unchanged, so that streams, Hijack and
// http.ResponseController work. So the middleware does not know what the handler has written,
// and a handler that stops because of its context must complete the response itself. If nothing
// is written yet, answer 503. If a part is written, panic(http.ErrAbortHandler) tells the
// client that the response is incomplete. A handler that only returns makes an empty 200.
//
// A permit is held and renewed until the handler returns, however long a stream lasts. A
// hijacked connection counts as long as its handler runs. A panic passes through, after the
// permit was given back.
//
// The permit is given back before net/http ends the response, so that the client's next request
// finds the place free. The release delays the response by one round trip to the server, or by at
// most node.Config.CleanupTimeout if the server does not answer.
//
// # When Redis does not answer
//
// By default a request is refused with 503, and a text that does not mention a line, once MaxWait has
// passed or the server's error is known. With Options.FailOpen the request is then served without a
// permit. MaxWaiting still counts: while the server is silent, each process serves at most MaxWaiting
// requests in each MaxWait. Requests that hold a permit go on until their lease is over.
//
// # Logs
//
// Options.Logger gets a sample of the refusals. The logger and the observer of the node get all other events of a
// request in line.
//
// # Names from strangers
//
// A tenant's id in a header is text from a stranger. The function of LimitBy should check the id by keyspace.CheckName
// before it makes the semaphore, and return the error: the answer is then 400 (Bad Request). The answer is also 400 for a
// semaphore with a bad name, but then Check of the node fails from then on. Every new name takes memory on the server, and
// a stranger can make many names. So verify the id before making a name of it, or use [Bucket], which maps any text to one
// of a fixed number of names.
package berthhttp
