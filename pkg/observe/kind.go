package observe

// Kind is what happened.
//
// Every comment below ends with the fields that a kind fills beside those that
// all events have, and with the level of its log line. An event about one claim
// also has Claim, Owner and Attrs, and one that ends an acquire has Queued.
// docs/generated/events.md is made of these comments, and a test reads them: keep
// their form.
type Kind string

// The course of a claim, the same in all primitives. Every claim that was sent
// ends its acquire with exactly one of Granted, Reentered, Refused, TimedOut,
// Cancelled, AttemptsUsedUp, Deadlock and Failed. If the claim waited in line, it
// has exactly one event of kind Queued before, and the event that ends its acquire
// has Event.WasQueued set. So the number of claims that wait is one more after each
// event of kind Queued, and one less after each other event with Event.WasQueued.
// A call may make several claims, one after another or at once; each has its own
// events.
const (
	// Queued: a claim has its place in line and waits.
	// Fills: Ahead, Capacity, Weight. Level: debug.
	Queued Kind = "queued"
	// Granted: a claim got what it asked for; its call returns the handle.
	// Fills: Fence, Waited, Lease, Capacity, Weight, Resource. Level: debug.
	Granted Kind = "granted"
	// Refused: the server turned a claim away. Reason says why: a call that
	// does not wait found nothing free, the claim is too heavy, an operator
	// removed it, it insists on another capacity, or its owner has too many
	// entries.
	// Fills: Waited, Capacity, Weight, Reason, Err. Level: debug.
	Refused Kind = "refused"
	// TimedOut: MaxWait, or the deadline of the caller's context, passed
	// during the wait.
	// Fills: Waited, Capacity, Weight, Reason, Err. Level: info.
	TimedOut Kind = "timed_out"
	// Cancelled: the context of the call was cancelled during the wait, its
	// client was closed, or its node was replaced in a swarm. In the last case
	// the call goes on with a new claim under the new node.
	// Fills: Waited, Capacity, Weight, Reason, Err. Level: debug.
	Cancelled Kind = "cancelled"
	// Failed: the server could not be reached, or answered an acquire with an
	// error, or the grant ended before its caller had the handle: then a call
	// that may wait goes on with another claim, nine times at most.
	// Fills: Waited, Weight, Reason, Err. Level: warn.
	Failed Kind = "failed"
	// Restored: the server had forgotten a waiting claim (a flush, a
	// failover), which then asked again with the ticket that it had.
	// Fills: Waited. Level: info.
	Restored Kind = "restored"
	// Unavailable: for some seconds the server has not answered the calls of a
	// claim, or has not run them (READONLY, LOADING). The client goes on repeating
	// them. The event is sent again each minute until a call is answered. Detail
	// says what the claim does: "asks", "waits" or "holds". Silent is how long the
	// server has been silent, Count how many calls have failed since then, Err the
	// error of the last one. Fence, Held, Lease and Left are those of a hold: the
	// hold is lost when Left has passed. The client's Logger gets one line a minute for all
	// claims, which says how many holds and waits the node has.
	// Fills: Waited, Silent, Count, Detail, Fence, Held, Lease, Left, Err. Level: warn.
	Unavailable Kind = "unavailable"
	// CleanupFailed: a claim whose wait has ended could not be removed within
	// CleanupTimeout. The server drops it when its wait lease ends.
	// Fills: Err. Level: warn.
	CleanupFailed Kind = "cleanup_failed"
)

// The course of a hold, the same in all primitives. Unless its process or its
// client ends first, or its release is not answered, every hold ends with exactly one of
// Released, ReleasedByOther, Lost, Expired and ReentryEnded. The first event that says that a
// hold of this node is over has Event.WasHeld set; it may also be Detached or ReleaseFailed.
// So the number of holds is one more after each Granted, Reentered and Resumed, and one less
// after each event with Event.WasHeld.
const (
	// HeldLong: a hold has lasted longer than WarnHeldLongerThan and was
	// perhaps forgotten. Sent once per hold.
	// Fills: Fence, Held, Lease, Weight, Resource. Level: warn.
	HeldLong Kind = "held_long"
	// Detached: a handle was ended by Detach; its hold lives on, not renewed, until its
	// lease ends.
	// Fills: Fence, Held, Lease, Left, Resource. Level: debug.
	Detached Kind = "detached"
	// Resumed: this node took up a detached hold.
	// Fills: Fence, Lease, Left, Resource. Level: debug.
	Resumed Kind = "resumed"
	// Wanted: this node has heard that somebody wants a hold back: an operator, or a claim that
	// waits with WantAfter. Sent once per hold, which goes on.
	// Fills: Fence, Held, Lease, Weight, Resource. Level: info.
	Wanted Kind = "wanted"
	// Released: a holder gave its hold back.
	// Fills: Fence, Waited, Held, Lease, Weight, Resource. Level: debug.
	Released Kind = "released"
	// ReleasedByOther: a hold of this node was given back by somebody else:
	// by its id, or by force.
	// Fills: Fence, Held, Lease, Weight, Resource, Err. Level: info.
	ReleasedByOther Kind = "released_by_other"
	// Lost: a lease ended that should have been renewed. Whoever works under the
	// hold must stop.
	// Fills: Fence, Held, Lease, Weight, Resource, Err. Level: warn.
	Lost Kind = "lost"
	// Expired: a hold ended by its own limit: its MaxHold, or its lease where
	// it does not renew by itself.
	// Fills: Fence, Held, Lease, Weight, Resource, Err. Level: info.
	Expired Kind = "expired"
	// RenewRefused: a newer release of Berth has begun to write the name, so that the server
	// refuses the renewals of a hold. The hold is lost when Left has passed: upgrade this
	// process. Sent with the first refusal.
	// Fills: Fence, Held, Lease, Left, Weight, Resource, Err. Level: error.
	RenewRefused Kind = "renew_refused"
	// ReleaseFailed: a release was not answered. If the release did not run, the
	// hold lasts for Left more at the most.
	// Fills: Fence, Held, Left, Err. Level: warn.
	ReleaseFailed Kind = "release_failed"
	// ReleasedAgain: a server had lost the release of a hold without end, or of one with a
	// lease above the wait lease, in a restart or a failover. The client asked again, and it is released.
	// Fills: Fence. Level: info.
	ReleasedAgain Kind = "released_again"
)

// What a node does and finds out, of all kinds.
const (
	// ForceReleased: an operator's call on this node, or a release by id,
	// ended holds of others. Claim is filled when one was named; Count is how
	// many ended.
	// Fills: Count. Level: info.
	ForceReleased Kind = "force_released"
	// WantedBack: an operator's call on this node asked for a hold of another one. Count is how
	// many, 1.
	// Fills: Count. Level: info.
	WantedBack Kind = "wanted_back"
	// Paused: a call on this node has paused a name or, without a name, all of its kind. Detail
	// is the reason that was given, Count how many names in use all are.
	// Fills: Left, Detail. Level: info.
	Paused Kind = "paused"
	// Unpaused: a call on this node has ended the pause of a name or, without a name, of
	// all. Count is how many claims wait for it yet, of all how many pauses were ended.
	// Fills: Count. Level: info.
	Unpaused Kind = "unpaused"
	// Swept: a script of this node dropped claims whose deadline had passed:
	// their process died, or was cut off. Count is how many.
	// Fills: Count. Level: debug.
	Swept Kind = "swept"
	// Heartbeat: heartbeats of this node that were sent together are over. Count is the number of
	// claims in them. Late is for the heartbeat that was sent latest: how long after its time it was sent. The time
	// of a heartbeat is a third of the lease after the one before. If some heartbeats were not answered in
	// time, they have an event of their own, with the error in Err.
	// Fills: Late, Count, Err. Level: debug.
	Heartbeat Kind = "heartbeat"
	// Repeated: a script or a read was not answered, or did not run, and is sent again.
	// Detail is its name, Count the number of the attempt that failed, from 1.
	// Fills: Count, Detail, Err. Level: debug.
	Repeated Kind = "repeated"
	// ConnectionsBroken: for a second a replica has answered this node (READONLY), which has then
	// broken all connections of its rueidis client, so that new ones are made: the address may lead to
	// another server by now. What else was under way on them has failed. Clients on one rueidis client
	// do this once; one of them sends the event. Count is how many connections led to a replica, 0
	// if that is not known; Left is for how long they are not broken again: 2 s, then twice as long each
	// time, 1 min at the most. Err is the replica's answer.
	// Fills: Left, Count, Err. Level: warn.
	ConnectionsBroken Kind = "connections_broken"
	// Deaf: the subscription to this node's wake channel brings nothing: twice, a
	// message that the node published to itself did not come. Perhaps its server was
	// taken out of the cluster. The node subscribes anew, on the server of a name
	// that it waits for. Until then the node hears of a grant with its next
	// heartbeat. Count is how often this has happened. Also sent, once, where the server
	// refuses this user the subscription, with the refusal in Err: the node tries again
	// each minute, and hears of every grant with its next heartbeat.
	// Fills: Count, Err. Level: warn.
	Deaf Kind = "deaf"
	// Draining: an operator has asked this process to drain, or not to any more. Detail
	// is "drain" or "stop", and the target as [berth.DrainTarget.String] has it.
	// Err says why it drains, with the reason.
	// Fills: Detail, Err. Level: info.
	Draining Kind = "draining"
	// NoticeFailed: the node could not read what operators say to all nodes, that
	// names are paused and who is to drain; or it has read only a part, because there are more
	// than 10 000 fields, so that a drain of a label with * is not heard, or because something
	// else than Berth has written one of them. The client goes on by what it knows, and reads
	// again each 5 s. Sent once, until a read has succeeded, or was whole.
	// Fills: Err. Level: warn.
	NoticeFailed Kind = "notice_failed"
	// Panicked: a part of Berth that runs in the background has panicked, perhaps on something that is stored
	// and that Berth has not written. It goes on, and the process with it. Detail is which part, Err has the panic
	// and its stack: please report it.
	// Fills: Detail, Err. Level: warn.
	Panicked Kind = "panicked"
	// Subscribed: the server confirmed the subscription to this node's wake
	// channel. Count is how often it has done so: from 2 on, the connection
	// was broken in between.
	// Fills: Count. Level: debug.
	Subscribed Kind = "subscribed"
)

// What only semaphores have.
const (
	// CapacityDiffers: a semaphore of this node was given another capacity than the stored
	// one. Capacity is the stored one, which counts; Count is the semaphore's.
	// Fills: Capacity, Count. Level: warn.
	CapacityDiffers Kind = "capacity_differs"
	// Resized: a call on this node changed the stored capacity. Capacity is
	// the new one, Count the one before, 0 where there was none.
	// Fills: Capacity, Count. Level: info.
	Resized Kind = "resized"
)

// What only locks have.
const (
	// AttemptsUsedUp: the attempts that a call allowed were used up.
	// Fills: Waited, Reason, Err. Level: info.
	AttemptsUsedUp Kind = "attempts_used_up"
	// Deadlock: a claim would have waited for its own owner.
	// Fills: Waited, Err. Level: info.
	Deadlock Kind = "deadlock"
	// Requeued: a waiting claim went to the end of the line, as its RequeueEvery
	// asks for.
	// Fills: Waited, Ahead. Level: info.
	Requeued Kind = "requeued"
	// Reentered: a claim was granted because its owner holds the lock already.
	// Lease is by how much it lengthened the outer hold, 0 if it did not.
	// Fills: Fence, Waited, Lease, Left. Level: debug.
	Reentered Kind = "reentered"
	// ReentryEnded: an inner hold was given back; the outer one lasts.
	// Fills: Fence, Held, Lease. Level: debug.
	ReentryEnded Kind = "reentry_ended"
	// Extended: a holder, or an operator by force, lengthened a hold. Lease is
	// by how much.
	// Fills: Fence, Lease, Left. Level: debug.
	Extended Kind = "extended"
)

// What only nodes in a swarm have.
const (
	// ProbeFailed: this node could not confirm that it lives.
	// Fills: Left, Err. Level: warn.
	ProbeFailed Kind = "probe_failed"
	// Condemned: this node found another one dead; it may never probe again.
	// Detail is the dead node's id.
	// Fills: Detail. Level: info.
	Condemned Kind = "condemned"
	// Flushed: claims of a dead node were removed from a lock and handed on.
	// Detail is the dead node's id, Count how many claims it had.
	// Fills: Count, Detail. Level: info.
	Flushed Kind = "flushed"
	// NodeReplaced: this node did not probe in time, or was found dead. Its
	// handles have ended and it goes on under a new id. Node is the new one,
	// Detail the old one, Count how many handles ended.
	// Fills: Count, Detail. Level: warn.
	NodeReplaced Kind = "node_replaced"
)

// What pools of resources and runs of a period have.
const (
	// SettingsDiffer: this process says other settings of the pool than the stored ones, which
	// count, or has found its period done by a run with another Every, Offset or Schedule. Detail names the fields with
	// both values. It is sent once for each change of what is stored; of runs once in a period.
	// Fills: Detail. Level: warn.
	SettingsDiffer Kind = "settings_differ"
)

// What only pools of resources have.
const (
	// Rested: a resource is set aside for the time in Left, because somebody asked
	// for it; the Cooldown after a use tells nothing. Detail is the reason that was
	// given.
	// Fills: Left, Resource, Detail. Level: debug.
	Rested Kind = "rested"
	// SettingsChanged: a call on this node changed the settings of a pool, or of the
	// resource in Resource. Detail is what they are now.
	// Fills: Resource, Detail. Level: info.
	SettingsChanged Kind = "settings_changed"
	// Swapped: a hold gave its resource back, got another one and goes on.
	// Resource is the new one, Detail the old one.
	// Fills: Fence, Resource, Detail. Level: debug.
	Swapped Kind = "swapped"
	// OpenFailed: Open returned an error; the resource goes back and rests.
	// Fills: Resource, Err. Level: warn.
	OpenFailed Kind = "open_failed"
	// CloseFailed: Close returned an error. The pool does not use the value any
	// more.
	// Fills: Resource, Err. Level: warn.
	CloseFailed Kind = "close_failed"
	// Refreshed: the pool took over what its Source returned. Count is how
	// many resources that is.
	// Fills: Count. Level: debug.
	Refreshed Kind = "refreshed"
	// RefreshFailed: Source returned an error; the pool stays as it is.
	// Fills: Err. Level: warn.
	RefreshFailed Kind = "refresh_failed"
	// HealthProgress: a run over the free resources goes on. Count is how many
	// it has checked so far.
	// Fills: Count. Level: debug.
	HealthProgress Kind = "health_progress"
	// HealthChecked: one run over the free resources ended. Count is how many
	// it checked; Err is set if that was not all.
	// Fills: Count, Err. Level: debug.
	HealthChecked Kind = "health_checked"
	// Damaged: the server's data of a resource cannot be read, because something
	// else than Berth wrote to its key. Nobody gets the resource until it is removed
	// or added again. Sent once, by the node whose call found it.
	// Fills: Resource. Level: warn.
	Damaged Kind = "damaged"
	// Unhealthy: Healthy said no to a resource.
	// Fills: Resource, Err. Level: info.
	Unhealthy Kind = "unhealthy"
)

// What only package once sends. Detail is the start of the period, in RFC 3339.
const (
	// Ran: a run of a period has succeeded. Count is which attempt of the period it was, from 1.
	// Fills: Fence, Held, Count, Detail. Level: debug.
	Ran Kind = "ran"
	// RunFailed: a run of a period failed, or its outcome could not be kept. Count is which attempt of
	// the period it was, from 1.
	// Fills: Fence, Held, Count, Detail, Err. Level: warn.
	RunFailed Kind = "run_failed"
	// RunStopped: a run of a period was stopped by its own process, and the period may be begun again. It is not
	// sent of a run that was stopped before its function began.
	// Count is which attempt of the period it would have been, from 1: the next run has the same number.
	// Fills: Fence, Held, Count, Detail, Err. Level: info.
	RunStopped Kind = "run_stopped"
	// NotBegun: Job.Run could not begin a run, and will try again, in the next period where nothing is left
	// to try in this one. Err says why: the server did not answer, or refused; the lock was held or paused all
	// the time; the attempts are used up; the process drains. Detail is empty if the period is not known either.
	// Fills: Detail, Err. Level: warn.
	NotBegun Kind = "not_begun"
	// Missed: a run has begun, and periods before it went by without a success. Count is how many, of those
	// that the server knows and no run that failed has told of. The next run of the same period tells of
	// them again if this one dies or is stopped.
	// Fills: Fence, Count, Detail. Level: warn.
	Missed Kind = "missed"
	// FiredTwice: two firings of this process fell into one period, and nothing ran for the second one. The period is
	// longer than the schedule allows, or a clock went back.
	// Fills: Detail. Level: warn.
	FiredTwice Kind = "fired_twice"
)

// What only package leader sends. Primitive is "lock", as of the other events of its locks.
const (
	// TermBegan: this process leads: the function of a Run begins.
	// Fills: Fence. Level: info.
	TermBegan Kind = "term_began"
	// TermEnded: this process leads no more, and the function has returned. Held is how long it ran. Err is
	// why the context of the function ended before it returned, if it did: lost, wanted back, or that of Run ended.
	// Fills: Fence, Held, Err. Level: info.
	TermEnded Kind = "term_ended"
)

// What only a page of Berth sends, for an operator; see package console.
const (
	// Acted: somebody has acted from a page of Berth; the call that it made has events of its own. Detail is what
	// was done, by whom, and why.
	// Fills: Resource, Detail, Err. Level: info.
	Acted Kind = "acted"
)
