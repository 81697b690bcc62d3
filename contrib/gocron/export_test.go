package berthgocron

import (
	"context"

	"github.com/go-co-op/gocron/v2"

	"github.com/berth-go/berth/pkg/once"
)

// Derived are the periods of a job of a scheduler.
func Derived(scheduler gocron.Scheduler, name string) (once.Config, error) {
	cfg, _, err := derived(context.Background(), scheduler, name)
	return cfg, err
}
