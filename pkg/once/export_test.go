package once

import "time"

// PeriodAt is the period of a moment of the server.
func PeriodAt(cfg Config, now time.Time) Period {
	found, err := cfg.at(now)
	if err != nil {
		panic(err)
	}
	return found.period
}

// Decided is what a call says of its period without asking anybody, if its process knows of a success in the
// period that starts so much later.
func Decided(every, ahead time.Duration) Status {
	now := time.Now().UTC()
	q := &call{Config: Config{Every: every, Attempts: 1}, span: span{period: Period{Start: now}}, known: now.Add(ahead)}
	result, _ := q.decided()
	return result.Status
}
