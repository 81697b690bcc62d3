// Package berthhttp bounds how many HTTP requests are served at once, over all
// processes: net/http middleware on a semaphore of Berth.
//
//	n, err := node.New(redis, node.Config{})
//	limit, err := berthhttp.Limit(semaphore.New(n, "render", 20, semaphore.Config{}), nil)
//	mux.Handle("/render", limit(http.HandlerFunc(serve)))
//
// [Limit] has one semaphore for all requests, [LimitBy] chooses one for each request. A
// request waits in line for its permit, is served, and gives its permit back when its
// handler returns or panics. A request that gets no permit is answered 503 (Service
// Unavailable), with a Retry-After header. If the function of LimitBy fails, the answer is
// 500 (Internal Server Error), without that header.
//
// # The line
//
// Two bounds keep the line short. Options.MaxWait bounds how long a request waits. It
// needs no knowledge of the other processes, and it is what the client feels.
// Options.MaxWaiting bounds how many requests of this process wait for one semaphore: each
// of them costs memory and a connection. Where so many wait already, a request is refused at
// once, without a call to the server. So the whole line is at most MaxWaiting times the
// number of processes.
//
// A request whose client goes away, or whose context ends for another reason, leaves the
// line at once. (Over HTTP/1 net/http sees a client go away only after the body of its request
// has been read.) Requests come in the order in which the server saw them; a Priority and
// a Weight are options of the semaphore: give them to semaphore.New as defaults.
//
// # The permit
//
// The context of the request ends with its permit. The cause, by context.Cause, then
// matches berth.ErrLost, berth.ErrExpired (a MaxHold) or berth.ErrReleased (an operator).
// A handler that does not look at its context runs on, one above the capacity.
//
// The middleware passes the http.ResponseWriter on as it is, so that streams, Hijack and
// http.ResponseController work. So the middleware cannot know what the handler has written
// already, and answers nothing for it: a handler that stops because of its context
// says itself what becomes of the answer. If nothing is written yet, 503 is right. If a part
// is written, panic(http.ErrAbortHandler) tells the client that the answer is not whole. A
// handler that just returns makes an empty 200.
//
// A permit is held until the handler returns, however long a stream lasts: Berth renews it.
// A connection that was hijacked counts for as long as its handler runs. A panic passes
// through, after the permit was given back.
//
// The permit is given back before net/http ends the answer, so that a client that
// comes again finds its place free. It costs the answer one round trip to the server, and at most
// node.Config.CleanupTimeout where the server does not answer.
//
// # When Redis does not answer
//
// By default a request is refused, once MaxWait has passed or the server's error is known:
// with 503, and a text that speaks of no line. With Options.FailOpen it is then served without a permit.
// MaxWaiting counts on: while the server is silent, each process serves at most MaxWaiting
// requests in each MaxWait. Requests that hold a permit go on until their lease is over.
//
// # Logs
//
// Options.Logger gets a sample of the refusals. What else happens to a request in line, the logger and the observer of
// the node are told.
//
// # Names from strangers
//
// A tenant's id in a header is text from a stranger. Have the function of LimitBy return the error of
// keyspace.CheckName for it, before it makes the semaphore: the answer is 400 (Bad Request) then. It is 400 too where a
// semaphore was made of what is no name, but then Check of the node fails from then on. And every new name takes memory on
// the server, and a stranger can make many. Check the id before you make a name of it, or use
// [Bucket], which makes one of a fixed number of names of any text.
package berthhttp
