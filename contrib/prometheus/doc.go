// Package berthprom makes metrics of Prometheus from the events of Berth.
package berthprom
