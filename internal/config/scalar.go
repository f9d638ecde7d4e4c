package config

import (
	"errors"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// These read one value each. What they say never quotes the text: it may be a
// secret in the wrong place.

func setDuration(v reflect.Value, s string) error {
	days, isDays := strings.CutSuffix(s, "d")
	if n, err := strconv.Atoi(days); isDays && err == nil && n >= 0 && n <= 36500 {
		v.SetInt(int64(n) * int64(24*time.Hour))
		return nil
	}
	parsed, err := time.ParseDuration(s)
	if err != nil {
		return errors.New("must be a time such as 500ms, 30s, 10m, 24h or 90d")
	}
	v.SetInt(int64(parsed))
	return nil
}

func setBool(v reflect.Value, s string) error {
	switch s {
	case "true", "false":
		v.SetBool(s == "true")
		return nil
	default:
		return errors.New("must be true or false")
	}
}

func setInt(v reflect.Value, s string) error {
	n, err := strconv.Atoi(s)
	if err != nil {
		return errors.New("must be a whole number")
	}
	v.SetInt(int64(n))
	return nil
}

// setBytes reads a size: int64 is what sizes are in this configuration.
func setBytes(v reflect.Value, s string) error {
	unit := int64(1)
	for suffix, size := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
		if rest, ok := strings.CutSuffix(s, suffix); ok {
			s, unit = strings.TrimSpace(rest), size
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > (1<<40)/unit {
		return errors.New("must be a size in bytes, such as 1048576, 512KiB or 1MiB")
	}
	v.SetInt(n * unit)
	return nil
}
