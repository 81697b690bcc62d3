// Package berthhttp bounds how many requests are served at once, over all processes.
package berthhttp
