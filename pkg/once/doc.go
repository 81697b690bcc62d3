// Package once runs a job once in each period over all processes.
package once
