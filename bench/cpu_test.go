package bench_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// clockTick is what /proc counts processor time in: 100 a second on every Linux that Go runs on.
const clockTick = 10 * time.Millisecond

// cpuOf is the processor time that a process has used, user and system.
func cpuOf(pid int) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	return ticks(string(stat))
}

func ticks(stat string) time.Duration {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * clockTick
}

// cpuOfPostgres is the processor time of all running processes called postgres.
func cpuOfPostgres() (sum time.Duration) {
	found, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range found {
		if stat, err := os.ReadFile(path); err == nil && strings.Contains(string(stat), "(postgres)") {
			sum += ticks(string(stat))
		}
	}
	return sum
}
