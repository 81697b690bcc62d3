// Package berthgocron has a locker and an elector for gocron, over Berth.
package berthgocron
