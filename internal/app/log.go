package app

import (
	"io"
	"log/slog"

	"github.com/paidonce/paidonce/internal/config"
)

// NewLog returns the logger of a configuration, writing to w.
func NewLog(cfg config.Log, w io.Writer) *slog.Logger {
	var level slog.Level
	if level.UnmarshalText([]byte(cfg.Level)) != nil {
		level = slog.LevelInfo // the configuration was checked; better too much than nothing
	}
	opts := &slog.HandlerOptions{Level: level}
	if cfg.Format == "text" {
		return slog.New(slog.NewTextHandler(w, opts))
	}
	return slog.New(slog.NewJSONHandler(w, opts))
}
