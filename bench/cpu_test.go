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
	fields := statFields(stat)
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * clockTick
}

// cpuOfPostgres is the processor time that the server in dir has used, with all of its processes, also those that have ended.
func cpuOfPostgres(dir string) time.Duration {
	file, err := os.ReadFile(filepath.Join(dir, "data", "postmaster.pid"))
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(file), "\n")
	postmaster := strings.TrimSpace(first)
	stat, err := os.ReadFile("/proc/" + postmaster + "/stat")
	if err != nil {
		return 0
	}
	fields := statFields(string(stat))
	ended, _ := strconv.Atoi(fields[13])
	endedSystem, _ := strconv.Atoi(fields[14])
	sum := ticks(string(stat)) + time.Duration(ended+endedSystem)*clockTick
	found, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range found {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if fields := statFields(string(stat)); fields[1] == postmaster {
			sum += ticks(string(stat))
		}
	}
	return sum
}

// statFields are what follows the name of a process in its stat file, which may hold anything.
func statFields(stat string) []string {
	return strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
}
