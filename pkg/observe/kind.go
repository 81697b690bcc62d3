package observe

// Kind says what happened.
//
// The comment of each kind ends with the fields that the kind fills beside those that all
// events have, and with the level of its log line. An event about one claim also has Claim,
// Owner and Attrs, and an event that ends an acquire has WasQueued. docs/generated/events.md is
// made of these comments, and a test reads them: keep their form.
type Kind string

// Events in the life of a claim, the same in all primitives. The acquire of every claim that
// was sent ends with exactly one of Granted, Reentered, Refused, TimedOut, Cancelled,
// AttemptsUsedUp, Deadlock and Failed. If the claim waited in line, exactly one event of kind
// Queued comes before, and the event that ends the acquire has Event.WasQueued set. So each
// event of kind Queued adds one to the number of waiting claims, and each other event with
// Event.WasQueued subtracts one. A call may make several claims, one after another or at once;
// each claim has its own events.
const (
	// Queued: a claim has its place in line and waits.
	// Fills: Ahead, Capacity, Weight. Level: debug.
	Queued Kind = "queued"
	// Granted: a claim got what it asked for; its call returns the handle.
	// Fills: Fence, Waited, Lease, Capacity, Weight, Resource. Level: debug.
	Granted Kind = "granted"
	// Refused: the server refused a claim. Reason says why: a call that does not wait found
	// nothing free, the claim is too heavy, an operator removed the claim, the stored capacity
	// differs under CapacityStrict, or the owner has too many entries.
	// Fills: Waited, Capacity, Weight, Reason, Err. Level: debug.
	Refused Kind = "refused"
	// TimedOut: MaxWait, or the deadline of the caller's context, passed
	// during the wait.
	// Fills: Waited, Capacity, Weight, Reason, Err. Level: info.
	TimedOut Kind = "timed_out"
	// Cancelled: during the wait the context of the call was cancelled, the node was closed, or
	// the node was replaced in a swarm. In the last case the call goes on with a new claim under
	// the new node.
	// Fills: Waited, Capacity, Weight, Reason, Err. Level: debug.
	Cancelled Kind = "cancelled"
	// Failed: the server could not be reached, or answered an acquire with an error, or the grant
	// ended before the caller had the handle. In the last case a call that may wait goes on with
	// another claim, nine times at most.
	// Fills: Waited, Weight, Reason, Err. Level: warn.
	Failed Kind = "failed"
	// Restored: the server had forgotten a waiting claim (after a flush or a failover), and the
	// claim asked again with its old ticket.
	// Fills: Waited. Level: info.
	Restored Kind = "restored"
	// Unavailable: for some seconds the server has not answered, or not run (READONLY, LOADING),
	// the calls of a claim. The node keeps repeating the calls. The event is sent again each
	// minute until a call is answered. Detail says what the claim does: "asks", "waits" or
	// "holds". Silent is how long the server has been silent, Count how many calls have failed
	// since then, Err the error of the last call. Fence, Held, Lease and Left are filled for a
	// hold, which is lost when Left has passed. The node's Logger gets one line a minute for all
	// claims, with the numbers of the node's holds and waits.
	// Fills: Waited, Silent, Count, Detail, Fence, Held, Lease, Left, Err. Level: warn.
	Unavailable Kind = "unavailable"
	// CleanupFailed: a claim whose wait has ended could not be removed within CleanupTimeout. The
	// server drops the claim when its wait lease ends.
	// Fills: Err. Level: warn.
	CleanupFailed Kind = "cleanup_failed"
)

// Events in the life of a hold, the same in all primitives. Unless its process or its node ends
// first, or its release is not answered, every hold ends with exactly one of Released,
// ReleasedByOther, Lost, Expired and ReentryEnded. The first event to say that a hold of this
// node is over has Event.WasHeld set; it may also be of kind Detached or ReleaseFailed. So each
// Granted, Reentered and Resumed adds one to the number of holds, and each event with
// Event.WasHeld subtracts one.
const (
	// HeldLong: a hold has lasted longer than WarnHeldLongerThan; perhaps its release was
	// forgotten. Sent once per hold.
	// Fills: Fence, Held, Lease, Weight, Resource. Level: warn.
	HeldLong Kind = "held_long"
	// Detached: Detach ended a handle; the hold stays, without renewals, until its lease ends.
	// Fills: Fence, Held, Lease, Left, Resource. Level: debug.
	Detached Kind = "detached"
	// Resumed: this node took up a detached hold.
	// Fills: Fence, Lease, Left, Resource. Level: debug.
	Resumed Kind = "resumed"
	// Wanted: this node has learned that somebody wants a hold back: an operator, or a claim that
	// waits with WantAfter. The hold goes on. Sent once per hold.
	// Fills: Fence, Held, Lease, Weight, Resource. Level: info.
	Wanted Kind = "wanted"
	// Released: a holder gave its hold back.
	// Fills: Fence, Waited, Held, Lease, Weight, Resource. Level: debug.
	Released Kind = "released"
	// ReleasedByOther: somebody else gave back a hold of this node, by its id or by force.
	// Fills: Fence, Held, Lease, Weight, Resource, Err. Level: info.
	ReleasedByOther Kind = "released_by_other"
	// Lost: a lease ended that should have been renewed. The work under the hold must stop.
	// Fills: Fence, Held, Lease, Weight, Resource, Err. Level: warn.
	Lost Kind = "lost"
	// Expired: a hold ended at its own limit: its MaxHold, or its lease under NoRenew.
	// Fills: Fence, Held, Lease, Weight, Resource, Err. Level: info.
	Expired Kind = "expired"
	// RenewRefused: a newer release of Berth has begun to write the name, so the server refuses to
	// renew a hold. The hold is lost when Left has passed: upgrade this process. Sent with the
	// first refusal.
	// Fills: Fence, Held, Lease, Left, Weight, Resource, Err. Level: error.
	RenewRefused Kind = "renew_refused"
	// ReleaseFailed: a release was not answered. If the release did not run, the hold lasts at
	// most for Left.
	// Fills: Fence, Held, Left, Err. Level: warn.
	ReleaseFailed Kind = "release_failed"
	// ReleasedAgain: in a restart or a failover the server had lost the release of a hold without end, or
	// of a hold with a lease above the wait lease. The node has released the hold again.
	// Fills: Fence. Level: info.
	ReleasedAgain Kind = "released_again"
)

// Events of a node, the same for all kinds.
const (
	// ForceReleased: an operator's call on this node, or a release by id, ended holds of others.
	// Claim is filled if the call named one; Count is how many holds ended.
	// Fills: Count. Level: info.
	ForceReleased Kind = "force_released"
	// WantedBack: an operator's call on this node asked for a hold of another node. Count is
	// always 1.
	// Fills: Count. Level: info.
	WantedBack Kind = "wanted_back"
	// Paused: a call on this node has paused a name or, if Name is empty, all names of its kind.
	// Detail is the given reason. Count is how many names in use a pause of all names covers.
	// Fills: Left, Detail. Level: info.
	Paused Kind = "paused"
	// Unpaused: a call on this node has ended the pause of a name or, if Name is empty, of all
	// names. Count is how many claims still wait for the name or, for all names, how many pauses
	// were ended.
	// Fills: Count. Level: info.
	Unpaused Kind = "unpaused"
	// Swept: a script of this node dropped claims whose deadline had passed, because their process
	// died or was cut off. Count is how many claims.
	// Fills: Count. Level: debug.
	Swept Kind = "swept"
	// Heartbeat: a batch of this node's heartbeats is done. Count is the number of claims in the batch. Late is how
	// long after its due time the latest heartbeat of the batch was sent; a heartbeat is due a third of the lease
	// after the one before. Heartbeats that were not answered in time have an event of their own, with the error in
	// Err.
	// Fills: Late, Count, Err. Level: debug.
	Heartbeat Kind = "heartbeat"
	// Repeated: a script or a read was not answered, or did not run, and is sent again. Detail is
	// the name of the script or the read, Count the number of the failed attempt, from 1.
	// Fills: Count, Detail, Err. Level: debug.
	Repeated Kind = "repeated"
	// ConnectionsBroken: for a second a replica has answered this node (READONLY), and the node has
	// broken all connections of its rueidis client. New connections may reach another server, since the
	// address may lead elsewhere now. Other calls in flight on the broken connections have failed. Nodes
	// that share a rueidis client break its connections once, and one of them sends the event. Count is
	// how many connections led to a replica, 0 if that is not known. Left is how long the connections
	// will not be broken again: 2 s, then twice as long each time, at most 1 min. Err is the replica's
	// answer.
	// Fills: Left, Count, Err. Level: warn.
	ConnectionsBroken Kind = "connections_broken"
	// Deaf: the subscription to this node's wake channel brings nothing: twice, a message that the
	// node published to itself did not arrive. Perhaps the server was taken out of the cluster.
	// The node subscribes again, on the server of a name that it waits for. Until then the node
	// learns of a grant with its next heartbeat. Count is how often this has happened. Also sent
	// once if the server refuses this user the subscription, with the refusal in Err: the node
	// tries again each minute, and learns of every grant with its next heartbeat.
	// Fills: Count, Err. Level: warn.
	Deaf Kind = "deaf"
	// Draining: an operator has asked this process to drain, or to stop draining. Detail is
	// "drain" or "stop", and the target as [berth.DrainTarget.String] returns it. Err says why the
	// process drains, with the operator's reason.
	// Fills: Detail, Err. Level: info.
	Draining Kind = "draining"
	// NoticeFailed: the node could not read the operators' notice, which says that names are
	// paused and which processes must drain, or could read only a part of it. A part is unread if
	// the notice has more than 10 000 fields, so that the node misses a drain of a label with *,
	// or if another program has written a field. The node goes on with its last reading, and reads
	// again every 5 s. Sent once until a reading succeeds and is complete.
	// Fills: Err. Level: warn.
	NoticeFailed Kind = "notice_failed"
	// Panicked: a background part of Berth has panicked, perhaps because of stored data that Berth has not
	// written. The part and the process go on. Detail names the part, Err has the panic and its stack: please
	// report the panic.
	// Fills: Detail, Err. Level: warn.
	Panicked Kind = "panicked"
	// Subscribed: the server confirmed the subscription to this node's wake channel. Count is how
	// often the server has confirmed it; above 1, the connection was broken in between.
	// Fills: Count. Level: debug.
	Subscribed Kind = "subscribed"
)

// Events of semaphores only.
const (
	// CapacityDiffers: a semaphore of this node has another capacity than the stored one. Capacity
	// is the stored one, which counts; Count is the semaphore's.
	// Fills: Capacity, Count. Level: warn.
	CapacityDiffers Kind = "capacity_differs"
	// Resized: a call on this node changed the stored capacity. Capacity is the new capacity,
	// Count the one before, 0 if there was none.
	// Fills: Capacity, Count. Level: info.
	Resized Kind = "resized"
)

// Events of locks only.
const (
	// AttemptsUsedUp: the attempts that a call allowed were used up.
	// Fills: Waited, Reason, Err. Level: info.
	AttemptsUsedUp Kind = "attempts_used_up"
	// Deadlock: a claim would have waited for a hold of its own owner.
	// Fills: Waited, Err. Level: info.
	Deadlock Kind = "deadlock"
	// Requeued: a waiting claim went to the end of the line, because of its RequeueEvery.
	// Fills: Waited, Ahead. Level: info.
	Requeued Kind = "requeued"
	// Reentered: a claim was granted because its owner already holds the lock. Lease is how much
	// time the claim added to the outer hold, 0 for none.
	// Fills: Fence, Waited, Lease, Left. Level: debug.
	Reentered Kind = "reentered"
	// ReentryEnded: an inner hold was given back; the outer hold goes on.
	// Fills: Fence, Held, Lease. Level: debug.
	ReentryEnded Kind = "reentry_ended"
	// Extended: a holder, or an operator, extended a hold. Lease is how much time was added.
	// Fills: Fence, Lease, Left. Level: debug.
	Extended Kind = "extended"
)

// Events of nodes in a swarm only.
const (
	// ProbeFailed: this node could not confirm that it lives.
	// Fills: Left, Err. Level: warn.
	ProbeFailed Kind = "probe_failed"
	// Condemned: this node found another node dead; the dead node may never probe again. Detail is
	// the dead node's id.
	// Fills: Detail. Level: info.
	Condemned Kind = "condemned"
	// Flushed: claims of a dead node were removed from a name, and the places were handed on.
	// Detail is the dead node's id, Count how many claims that node had.
	// Fills: Count, Detail. Level: info.
	Flushed Kind = "flushed"
	// NodeReplaced: this node did not probe in time, or was found dead. Its handles have ended,
	// and the node goes on under a new id. Node is the new id, Detail the old id, Count how many
	// handles ended.
	// Fills: Count, Detail. Level: warn.
	NodeReplaced Kind = "node_replaced"
)

// Events of pools and of package once.
const (
	// SettingsDiffer: this process has other settings of the pool than the stored ones, which count; or a run with
	// another Every, Offset or Schedule has already done the period. Detail has the fields with both values. Sent once
	// for each change of the stored settings; for package once, once in a period.
	// Fills: Detail. Level: warn.
	SettingsDiffer Kind = "settings_differ"
)

// Events of pools only.
const (
	// Rested: somebody asked for a resource to rest; Left is for how long. A Cooldown after a use
	// sends no event. Detail is the given reason.
	// Fills: Left, Resource, Detail. Level: debug.
	Rested Kind = "rested"
	// SettingsChanged: a call on this node changed the settings of a pool, or of the resource in
	// Resource. Detail has the new settings.
	// Fills: Resource, Detail. Level: info.
	SettingsChanged Kind = "settings_changed"
	// Swapped: a hold gave its resource back, got another resource and goes on. Resource is the
	// new resource, Detail the old one.
	// Fills: Fence, Resource, Detail. Level: debug.
	Swapped Kind = "swapped"
	// OpenFailed: Open returned an error; the resource is given back and rests.
	// Fills: Resource, Err. Level: warn.
	OpenFailed Kind = "open_failed"
	// CloseFailed: Close returned an error. The pool no longer uses the value.
	// Fills: Resource, Err. Level: warn.
	CloseFailed Kind = "close_failed"
	// Refreshed: the pool now has the resources that its Source returned. Count is how many
	// resources.
	// Fills: Count. Level: debug.
	Refreshed Kind = "refreshed"
	// RefreshFailed: Source returned an error; the pool stays as it is.
	// Fills: Err. Level: warn.
	RefreshFailed Kind = "refresh_failed"
	// HealthProgress: a health check of the free resources is under way. Count is how many
	// resources it has checked so far.
	// Fills: Count. Level: debug.
	HealthProgress Kind = "health_progress"
	// HealthChecked: a health check of the free resources has ended. Count is how many resources
	// were checked; Err is set if some were not.
	// Fills: Count, Err. Level: debug.
	HealthChecked Kind = "health_checked"
	// Damaged: the server's data of a resource cannot be read, because another program wrote to
	// its key. Nobody gets the resource until it is removed or added again. Sent once, by the node
	// whose call found the damage.
	// Fills: Resource. Level: warn.
	Damaged Kind = "damaged"
	// Unhealthy: Healthy reported that a resource is not healthy.
	// Fills: Resource, Err. Level: info.
	Unhealthy Kind = "unhealthy"
)

// Events of package once only. Detail is the start of the period, in RFC 3339.
const (
	// Ran: a run of a period has succeeded. Count is the number of the attempt in the period, from
	// 1.
	// Fills: Fence, Held, Count, Detail. Level: debug.
	Ran Kind = "ran"
	// RunFailed: a run of a period failed, or its outcome could not be stored. Count is the number of
	// the attempt in the period, from 1.
	// Fills: Fence, Held, Count, Detail, Err. Level: warn.
	RunFailed Kind = "run_failed"
	// RunStopped: a run of a period was stopped by its own process, and another run of the period may begin. Not
	// sent for a run that was stopped before its function began. Count is the number of the attempt in the
	// period, from 1; the next run has the same number.
	// Fills: Fence, Held, Count, Detail, Err. Level: info.
	RunStopped Kind = "run_stopped"
	// NotBegun: Job.Run could not begin a run, and will try again: in this period or, if nothing is left to try,
	// in the next one. Err says why: the server did not answer or refused, the lock was held or paused all the
	// time, the attempts are used up, or the process drains. Detail is empty if the period is not known.
	// Fills: Detail, Err. Level: warn.
	NotBegun Kind = "not_begun"
	// Missed: a run has begun, and periods before it passed without a success. Count is how many such
	// periods the server knows, except those that a failed run has reported. If this run dies or is
	// stopped, the next run of the same period reports them again.
	// Fills: Fence, Count, Detail. Level: warn.
	Missed Kind = "missed"
	// FiredTwice: two firings of this process fell into one period, and nothing ran for the second firing. The period
	// is longer than the schedule allows, or a clock went back.
	// Fills: Detail. Level: warn.
	FiredTwice Kind = "fired_twice"
)

// Events of package leader only. Primitive is "lock", as in the other events of the election's
// lock.
const (
	// TermBegan: this process leads: the function of a Run begins.
	// Fills: Fence. Level: info.
	TermBegan Kind = "term_began"
	// TermEnded: this process no longer leads, and the function has returned. Held is how long the function ran.
	// Err is set if the function's context ended before the function returned: leadership was lost or wanted back,
	// or the context of Run ended.
	// Fills: Fence, Held, Err. Level: info.
	TermEnded Kind = "term_ended"
)

// Events of a web page of Berth only; see package console.
const (
	// Acted: an operator has acted from a page of Berth; the resulting call has events of its own. Detail says
	// what was done, by whom, and why.
	// Fills: Resource, Detail, Err. Level: info.
	Acted Kind = "acted"
)
