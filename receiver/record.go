package receiver

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// record gathers, along the way of one request, what its log line and its metrics say.
type record struct {
	began   time.Time
	remote  netip.Addr
	account string // account, source and gateway are empty until the source is known
	source  string
	gateway string
	read    bool // the body was read to its end
	bytes   int

	delivery  uuid.UUID
	events    []order.Event
	results   []store.Result
	objects   []store.Announcement
	announced store.Announced
	probe     bool
	note      string // of a probe
	ackBody   string
	ackType   string

	status    int
	reason    string
	diagnosis string // of a bad signature, now and then
	stack     string // of a panic
	unsent    error  // the answer could not be written
}

// maxLoggedEvents and maxLoggedID bound what one line takes: a batch may hold hundreds of events.
const (
	maxLoggedEvents = 20
	maxLoggedID     = 128
)

// outcomes lists what may be counted, in the order of the log line.
var outcomes = []store.Outcome{
	store.Applied, store.NoChange, store.Duplicate, store.Waiting, store.Ignored, store.Flagged, store.Quarantined,
}

// log writes the one line of a request. Everything in it is either ours or was verified; never a header, a body, a
// path or a query.
func (rc *Receiver) log(ctx context.Context, l *record, refused *refusal) {
	level := slog.LevelInfo // also of a bad signature: the internet is noisy
	switch {
	case l.reason == reasonPanic || l.reason == reasonNoGateway || l.reason == reasonNoVerifier || l.reason == reasonNoAnnouncer:
		level = slog.LevelError
	case l.status == http.StatusServiceUnavailable || l.counted(store.Quarantined) > 0 || l.unsent != nil:
		level = slog.LevelWarn
	}
	if !rc.opts.Logger.Enabled(ctx, level) {
		return
	}

	attrs := make([]slog.Attr, 0, 14)
	if l.source != "" {
		attrs = append(attrs, slog.String("account", l.account), slog.String("source", l.source), slog.String("gateway", l.gateway))
	}
	attrs = append(attrs,
		slog.Int("status", l.status),
		slog.Duration("duration", max(0, rc.opts.Now().Sub(l.began))),
		slog.String("remote", l.remote.String()),
		slog.Int("bytes", l.bytes))
	if l.reason != "" {
		attrs = append(attrs, slog.String("reason", l.reason))
	}
	if refused != nil && refused.err != nil {
		attrs = append(attrs, errAttr(refused.err))
	}
	if l.diagnosis != "" {
		attrs = append(attrs, slog.String("diagnosis", cut(l.diagnosis, maxDiagnosis)))
	}
	if len(l.events) > 0 {
		attrs = append(attrs, slog.String("delivery", l.delivery.String()),
			slog.Int("events", len(l.events)), slog.Any("event_ids", l.ids()))
	}
	for _, o := range outcomes {
		if n := l.counted(o); n > 0 {
			attrs = append(attrs, slog.Int(string(o), n))
		}
	}
	if len(l.objects) > 0 {
		attrs = append(attrs, slog.Int("objects", len(l.objects)), slog.Any("object_names", l.names()))
		if n := l.announced.Dropped; n > 0 {
			attrs = append(attrs, slog.Int("dropped", n))
		}
	}
	if l.probe {
		attrs = append(attrs, slog.Bool("probe", true))
	}
	if l.note != "" {
		attrs = append(attrs, slog.String("note", cut(l.note, maxLoggedID)))
	}
	if l.unsent != nil {
		attrs = append(attrs, slog.String("answer", "not sent"), slog.String("answer_err", l.unsent.Error()))
	}
	if l.stack != "" {
		attrs = append(attrs, slog.String("stack", l.stack))
	}
	rc.opts.Logger.LogAttrs(ctx, level, "webhook received", attrs...)
}

func (l *record) counted(o store.Outcome) (n int) {
	for _, r := range l.results {
		if r.Outcome == o {
			n++
		}
	}
	return n
}

func (l *record) ids() []string {
	ids := make([]string, 0, min(len(l.events), maxLoggedEvents))
	for _, e := range l.events[:min(len(l.events), maxLoggedEvents)] {
		ids = append(ids, cut(e.ID, maxLoggedID))
	}
	return ids
}

// names are what was announced. Of an unsigned delivery a stranger may have chosen them, from what the gateway's ids look
// like.
func (l *record) names() []string {
	names := make([]string, 0, min(len(l.objects), maxLoggedEvents))
	for _, o := range l.objects[:min(len(l.objects), maxLoggedEvents)] {
		names = append(names, cut(o.Object, maxLoggedID))
	}
	return names
}

// cut shortens s to at most n bytes, between two characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// maxKeptValue bounds a stored header, in bytes.
const maxKeptValue = 1 << 10

// storable makes headers text that Postgres can hold: HTTP allows bytes that are no UTF-8.
func storable(header map[string]string) map[string]string {
	for name, v := range header {
		header[name] = cut(strings.ReplaceAll(strings.ToValidUTF8(v, "\uFFFD"), "\x00", "\uFFFD"), maxKeptValue)
	}
	return header
}
