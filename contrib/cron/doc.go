// Package berthcron wraps the jobs of robfig/cron, so that one process runs each.
package berthcron
