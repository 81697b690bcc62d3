package allocator

import "context"

// HealthReport is what CheckHealth found.
type HealthReport struct {
	// Checked is how many resources were asked.
	Checked int
	// Healthy is how many of them work.
	Healthy int
	// Unhealthy is how many do not, and rest now.
	Unhealthy int
	// Skipped is how many were leased or rested, and were left alone.
	Skipped int
}

// Inspection is what Inspect found.
type Inspection struct {
	// Stats are the counts.
	Stats Stats
	// Bindings is how many bindings there are.
	Bindings int
	// Moving says whether the pool changed meanwhile, so that the counts are
	// not those of one moment.
	Moving bool
	// Problems say which invariants do not hold, and where. None is right.
	Problems []string
}

// CheckHealth leases each free resource in turn, workers of them at once, at
// least 1, and asks Healthy. What is not healthy rests. Progress goes to the
// observer.
func (p *Pool[T]) CheckHealth(ctx context.Context, workers int) (HealthReport, error) {
	return HealthReport{}, errSketch
}

// GC drops what has expired, a bounded number of entries, and returns how many
// that were: 0 says that nothing was left. Every other call does the same on
// its way.
func (p *Pool[T]) GC(ctx context.Context) (int, error) { return 0, errSketch }

// Inspect counts everything and checks the pool's invariants. It changes
// nothing. It is one step up to 10 000 resources, several above.
func (p *Pool[T]) Inspect(ctx context.Context) (Inspection, error) { return Inspection{}, errSketch }
