package report

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/redis/rueidis"
)

// Machine is where a run took place.
type Machine struct {
	CPUs   int    `json:"cpus"`
	Model  string `json:"model"`
	OS     string `json:"os"`
	Kernel string `json:"kernel"`
	Go     string `json:"go"`
	Server string `json:"server"`
}

// ThisMachine describes the machine that this runs on, and the server.
func ThisMachine(ctx context.Context, redis rueidis.Client) (Machine, error) {
	info, err := redis.Do(ctx, redis.B().Info().Section("server").Build()).ToString()
	if err != nil {
		return Machine{}, fmt.Errorf("INFO server: %w", err)
	}
	server := "Redis " + field(info, "redis_version:")
	if version := field(info, "valkey_version:"); version != unknown {
		server = "Valkey " + version
	}
	return Machine{
		CPUs: runtime.NumCPU(), Model: field(read("/proc/cpuinfo"), "model name"),
		OS: runtime.GOOS + "/" + runtime.GOARCH, Kernel: field(read("/proc/sys/kernel/osrelease"), ""),
		Go: runtime.Version(), Server: server,
	}, nil
}

const unknown = "unknown"

// read returns what is in a file of Linux's, and nothing elsewhere.
func read(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return string(text)
}

// field returns what follows a prefix in the first line that has it.
func field(text, prefix string) string {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, prefix); ok {
			return strings.TrimSpace(strings.TrimLeft(value, "\t :"))
		}
	}
	return unknown
}
