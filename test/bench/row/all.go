package row

import "slices"

// All returns the rows in the order of the report.
func All() []Row {
	return slices.Concat(
		uncontendedRows(), freshRows(), otherRows(), contendedRows(), processRows(), fairnessRows(), handoffRows(),
		waiterRows(), holderRows(), memoryRows(), idleRows(), poolRows(), clientRows(), firstRows(), deadRows(), busyRows(),
	)
}

// Jobs returns what child processes can run, by name.
func Jobs() map[string]Job {
	return map[string]Job{workerJob: runWorker, holderJob: runHolder, waitersJob: runWaiters, firstJob: runFirst, busyJob: runBusy}
}
