package engine

// phase is how far a claim has come on this side. It only moves down this list.
type phase uint8

const (
	asking   phase = iota // no answer to its acquire is known
	waiting               // it stands in line
	granted               // it has what it asked for; its caller has not got the handle
	held                  // its caller has the handle
	loose                 // the handle lives on without the server: see Hold.Loosen
	detached              // the server's hold lives on without the handle: see Hold.Detach
	ended
	phases
)

// kind is what happens to a claim.
type kind uint8

const (
	evAsk          kind = iota // an attempt of its acquire is about to be sent
	evQueued                   // an attempt's answer: it stands in line
	evGranted                  // an attempt's answer, or that of a resume: it holds
	evRefused                  // an attempt's answer: it got nothing
	evSecret                   // a secret was drawn for its record
	evPushed                   // a push says that it was granted
	evPrompted                 // a push says that it has ended
	evLook                     // its waiting caller looks at it
	evCall                     // an own call, a heartbeat among them, is about to be sent
	evHeld                     // an own call's answer: it holds
	evWaits                    // an own call's answer: it waits
	evUnknown                  // an own call's answer: the server does not know it
	evTooHeavy                 // an own call's answer: it will never fit any more
	evOver                     // an own call's answer: somebody else has ended it
	evRestore                  // a restore of it is about to be sent
	evRestored                 // a restore's answer: it waits where it did
	evRestoredHeld             // a restore's answer: it holds
	evRequeued                 // a requeue's answer: it waits at the end of the line
	evFailed                   // a call of it failed, or counts as unanswered
	evMissed                   // its heartbeat failed, or counts as unanswered
	evRejected                 // its heartbeat failed, and would fail again
	evHanded                   // its caller gets the handle
	evTimeUp                   // its local deadline, or its limit, has passed
	evEnd                      // this process has learned that the hold is over
	evSwapping                 // a call begins that exchanges what it holds
	evSwapped                  // an exchange's answer: it holds something else
	evSwapOver                 // that call is over
	evLoosen                   // its handle is to go on without the server
	evDetached                 // an own call's answer: nobody renews the hold any more
	evLeave                    // its caller gets an error
	evRelease                  // its handle is released
	evParted                   // the answer to its release
	evPartFailed               // its release failed
	kinds
)

// rule is what an event does in a phase.
type rule uint8

const (
	ignores   rule = iota // nothing
	sends                 // the attempt may be sent
	joins                 // the claim joins those that wait here
	takes                 // the grant is taken, and its lease kept
	hears                 // the claim got nothing: it ends, unless its asker tries again
	passes                // only what the answer says of the line counts
	proves                // a push of its grant proves itself by the secret
	notes                 // the push is kept until the claim waits
	hurries               // the next heartbeat is sent at once
	believes              // the push is taken, or has to be confirmed first
	settles               // the grant is the caller's, or has to be confirmed first
	refuses               // the caller is told why
	looks                 // what is known now is kept with the call
	discovers             // the grant is taken; where no push told of it, the subscription is tested
	renews                // the hold goes on, if the answer is about its grant
	stays                 // the place is good for another wait lease
	restores              // the place is to be asked for again
	declines              // the wait ends: too heavy
	stops                 // the wait ends: somebody else has ended it
	vanishes              // the hold is lost, unless the answer is older than the grant
	loses                 // so it is, and the claim's place in line is given back
	ends                  // the hold ends: somebody else has ended it
	returns               // the restore may be sent; pushes are in doubt from here on
	stands                // the claim stands where it stood
	moves                 // the claim has a new place
	complains             // silence is noted, and told of when it lasts; then as doubts
	doubts                // if the call may bring the claim back, its removal leaves a tombstone
	misses                // so it is, once for each heartbeat
	breaks                // the wait fails
	hands                 // the caller has the handle
	expires               // the hold ends by its own time
	closes                // the hold ends
	frees                 // the handle ends; its release has nothing to give back, and returns nil
	swaps                 // from here on no answer proves what the claim holds
	swapped               // the claim holds something else
	unswaps               // answers prove it again
	loosens               // the handle loses its lease, and the claim is removed
	forgoes               // the handle has ended before: the claim is removed, and its release returns nil
	detaches              // the handle ends, and the hold stays
	leaves                // the claim ends, and is removed unless the server has nothing of it
	retires               // the handle ends before its release is sent
	repeats               // the release is sent if it is this handle's to send
	parts                 // what every later release returns is known
	wonders               // the release may have run all the same
	rules
)

// table says what each event does in each phase. An event that a phase does not name does
// nothing there.
type table [kinds][phases]rule

// course is the table of every claim. docs/architecture.md shows it, and a test compares
// the two.
var course = table{
	evAsk:          {asking: sends},
	evQueued:       {asking: joins, ended: passes},
	evGranted:      {asking: takes, ended: passes},
	evRefused:      {asking: hears, ended: passes},
	evSecret:       {asking: proves, waiting: proves},
	evPushed:       {asking: notes, waiting: believes},
	evPrompted:     {waiting: hurries, granted: hurries, held: hurries},
	evLook:         {waiting: believes, granted: settles, ended: refuses},
	evCall:         {waiting: looks, granted: looks, held: looks},
	evHeld:         {waiting: discovers, granted: renews, held: renews},
	evWaits:        {waiting: stays, granted: vanishes, held: loses},
	evUnknown:      {waiting: restores, granted: vanishes, held: vanishes},
	evTooHeavy:     {waiting: declines, granted: vanishes, held: vanishes},
	evOver:         {waiting: stops, granted: ends, held: ends},
	evRestore:      {waiting: returns},
	evRestored:     {waiting: stands},
	evRestoredHeld: {waiting: hurries},
	evRequeued:     {waiting: moves},
	evFailed:       {asking: complains, waiting: complains, granted: complains, held: complains, loose: doubts, ended: doubts},
	evMissed:       {waiting: misses, granted: misses, held: misses},
	evRejected:     {waiting: breaks},
	evHanded:       {granted: hands, ended: refuses},
	evTimeUp:       {granted: expires, held: expires},
	evEnd:          {granted: closes, held: closes, loose: frees},
	evSwapping:     {held: swaps},
	evSwapped:      {held: swapped, ended: swapped},
	evSwapOver:     {held: unswaps},
	evLoosen:       {held: loosens, ended: forgoes},
	evDetached:     {held: detaches},
	evLeave:        {asking: leaves, waiting: leaves, granted: leaves, ended: leaves},
	evRelease:      {held: retires, loose: frees, ended: repeats},
	evParted:       {ended: parts},
	evPartFailed:   {ended: wonders},
}
