package berthprom_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	berthprom "github.com/berth-go/berth/contrib/prometheus"
	"github.com/berth-go/berth/pkg/embedded"
	"github.com/berth-go/berth/pkg/node"
	"github.com/berth-go/berth/pkg/observe/measure"
	"github.com/berth-go/berth/pkg/qlock"
)

// Two orders are worked on, and one of them still is.
func Example() {
	ctx := context.Background()
	server, err := embedded.Start()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	redis, err := server.Client()
	if err != nil {
		log.Fatal(err)
	}
	defer redis.Close()

	registry := prometheus.NewRegistry() // an application takes prometheus.DefaultRegisterer
	metrics, err := berthprom.New(registry, measure.Config{NameClass: measure.Collapse})
	if err != nil {
		log.Fatal(err)
	}
	n, err := node.New(redis, node.Config{Observer: metrics})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = n.Close(ctx) }()

	locks := qlock.New(n, qlock.Config{})
	first, err := locks.Lock(ctx, "order:1041", nil)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := locks.Lock(ctx, "order:1042", nil); err != nil {
		log.Fatal(err)
	}
	if err := first.Release(ctx); err != nil {
		log.Fatal(err)
	}

	families, err := registry.Gather()
	if err != nil {
		log.Fatal(err)
	}
	for _, family := range families {
		switch family.GetName() {
		case "berth_acquires_total", "berth_held", "berth_hold_ends_total":
			if _, err := expfmt.MetricFamilyToText(os.Stdout, family); err != nil {
				log.Fatal(err)
			}
			fmt.Println()
		}
	}
	// Output:
	// # HELP berth_acquires_total Acquires that have ended.
	// # TYPE berth_acquires_total counter
	// berth_acquires_total{name_class="order:*",outcome="granted",primitive="lock"} 2
	//
	// # HELP berth_held Holds of this process that last now, whatever their weight.
	// # TYPE berth_held gauge
	// berth_held{name_class="order:*",primitive="lock"} 1
	//
	// # HELP berth_hold_ends_total Holds that have ended.
	// # TYPE berth_hold_ends_total counter
	// berth_hold_ends_total{name_class="order:*",outcome="released",primitive="lock"} 1
}
