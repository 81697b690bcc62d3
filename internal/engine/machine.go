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

// kind is what happens to a claim. What an own call's answer says counts only where no call
// that was sent later was answered before; evSaysTooHeavy and evSaysEnded are final, and count
// always.
type kind uint8

const (
	evAsk           kind = iota // an attempt of its acquire is about to be sent
	evQueued                    // an attempt's answer: it stands in line
	evGranted                   // an attempt's answer, or that of a resume: it holds
	evRefused                   // an attempt's answer: it got nothing
	evSecret                    // a secret was drawn for its record
	evPushed                    // a push says that it was granted
	evPrompted                  // a push says that it has ended
	evLook                      // its waiting caller looks at it
	evCall                      // an own call, a heartbeat among them, is about to be sent
	evSaysHeld                  // an own call's answer: it holds
	evSaysWaiting               // an own call's answer: it waits
	evSaysUnknown               // an own call's answer: the server does not know it
	evSaysTooHeavy              // an own call's answer: it will never fit any more
	evSaysEnded                 // an own call's answer: somebody else has ended it
	evRestore                   // a restore of it is about to be sent
	evRestored                  // a restore's answer: it waits where it did
	evRestoredHeld              // a restore's answer: it holds
	evRequeued                  // a requeue's answer: it waits at the end of the line
	evFailed                    // a call of it failed, or counts as unanswered
	evMissed                    // its heartbeat failed, or counts as unanswered
	evRejected                  // its heartbeat failed, and would fail again
	evHanded                    // its caller gets the handle
	evTimeUp                    // its local deadline, or its limit, has passed
	evEnd                       // this process has learned that the hold is over
	evSwapping                  // a call begins that exchanges what it holds
	evSwapped                   // an exchange's answer: it holds something else
	evSwapOver                  // the call that exchanges is over
	evLoosen                    // its handle is to go on without the server
	evDetached                  // an own call's answer: nobody renews the hold any more
	evLeave                     // its caller gets an error
	evRelease                   // its handle is released
	evReleased                  // a release's answer
	evReleaseFailed             // a release failed, or counts as unanswered
	kinds
)

// rule is what an event does in a phase.
type rule uint8

const (
	ignores       rule = iota // nothing happens
	sends                     // the attempt may be sent
	joins                     // the claim joins those that wait here
	takes                     // the grant is taken, and its lease kept
	denies                    // the claim ends, unless its asker sweeps and asks again
	tellsLine                 // only what the answer says of the line counts
	proves                    // the secret is what a push of its grant proves itself by
	keeps                     // the push is kept until the claim waits
	believes                  // the grant of the push is taken, or confirmed first
	hurries                   // the next heartbeat is sent at once
	settles                   // the caller gets the grant, or it is confirmed first
	reports                   // the caller is told why the claim has ended
	marks                     // the answer will count as being as old as what is known now
	discovers                 // the grant is taken; where no push told of it, the subscription is tested
	renews                    // the hold goes on, if the answer is about its grant
	stays                     // the place is good for another wait lease
	restores                  // the place is to be asked for again
	fails                     // the wait ends, for the reason that the event names
	loses                     // the hold is lost, unless the answer is older than the grant; what the server has instead is given back
	closes                    // the hold ends
	goesBack                  // the restore may be sent; from here on a push may be about an earlier grant
	stands                    // the claim stands where it stood
	moves                     // the claim has a new place
	complains                 // silence is noted, and told of when it lasts; what may bring the claim back makes its removal leave a tombstone
	misses                    // silence is noted, once for each heartbeat
	doubts                    // what may bring the claim back makes its removal leave a tombstone
	hands                     // the caller has the handle
	expires                   // the hold ends by its own time
	swaps                     // from here on no answer proves what the claim holds
	exchanges                 // the claim holds something else
	unswaps                   // answers prove again what the claim holds
	loosens                   // the handle loses its lease, and the claim is removed
	drops                     // the handle ends; its release has nothing to give back, and returns nil
	dropsLate                 // the handle has ended before: the claim is removed, and its release returns nil
	detaches                  // the handle ends, and the hold stays
	leaves                    // the claim ends, and is removed unless the server has nothing of it
	releases                  // the handle ends before its release is sent
	releasesAgain             // the release is sent, if it is still this handle's to send
	concludes                 // what every later release returns is known
	suspects                  // the release may have run all the same
	rules
)

// table says what each event does in each phase. An event that a phase does not name does
// nothing there.
type table [kinds][phases]rule

// course is the table of every claim. docs/architecture.md shows it, and a test compares
// the two.
var course = table{
	evAsk:           {asking: sends},
	evQueued:        {asking: joins, ended: tellsLine},
	evGranted:       {asking: takes, ended: tellsLine},
	evRefused:       {asking: denies, ended: tellsLine},
	evSecret:        {asking: proves, waiting: proves},
	evPushed:        {asking: keeps, waiting: believes},
	evPrompted:      {waiting: hurries, granted: hurries, held: hurries},
	evLook:          {waiting: believes, granted: settles, ended: reports},
	evCall:          {waiting: marks, granted: marks, held: marks},
	evSaysHeld:      {waiting: discovers, granted: renews, held: renews},
	evSaysWaiting:   {waiting: stays, granted: loses, held: loses},
	evSaysUnknown:   {waiting: restores, granted: loses, held: loses},
	evSaysTooHeavy:  {waiting: fails, granted: loses, held: loses},
	evSaysEnded:     {waiting: fails, granted: closes, held: closes},
	evRestore:       {waiting: goesBack},
	evRestored:      {waiting: stands},
	evRestoredHeld:  {waiting: hurries},
	evRequeued:      {waiting: moves},
	evFailed:        {asking: complains, waiting: complains, granted: complains, held: complains, loose: doubts, ended: doubts},
	evMissed:        {waiting: misses, granted: misses, held: misses},
	evRejected:      {waiting: fails},
	evHanded:        {granted: hands, ended: reports},
	evTimeUp:        {granted: expires, held: expires},
	evEnd:           {granted: closes, held: closes, loose: drops},
	evSwapping:      {held: swaps},
	evSwapped:       {held: exchanges, ended: exchanges},
	evSwapOver:      {held: unswaps},
	evLoosen:        {held: loosens, ended: dropsLate},
	evDetached:      {held: detaches},
	evLeave:         {asking: leaves, waiting: leaves, granted: leaves, ended: leaves},
	evRelease:       {held: releases, loose: drops, ended: releasesAgain},
	evReleased:      {ended: concludes},
	evReleaseFailed: {ended: suspects},
}
