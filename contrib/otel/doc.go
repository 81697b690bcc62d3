// Package berthotel makes metrics and spans of OpenTelemetry from the events of Berth.
package berthotel
