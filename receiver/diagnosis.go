package receiver

import (
	"sync"
	"time"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/signature"
	"github.com/paidonce/paidonce/signature/diagnose"
)

// How much a refused delivery may cost beyond being refused: whoever sends rubbish chooses when, and what.
const (
	diagnosisEvery    = 10 * time.Second // of one source
	diagnosisAnyEvery = time.Second      // of all
	diagnosisAttempts = 300
	diagnosisBody     = 64 << 10
	maxDiagnosis      = 512 // bytes in a line of the log: the name of a header may be in it
)

// diagnoses says now and then why deliveries do not verify, for the operator who set a source up.
type diagnoses struct {
	mu   sync.Mutex
	last time.Time
	of   map[string]time.Time // by source; sources are configured, so there are few
}

// due reports whether a delivery of a source may be looked at, and notes that it was.
func (d *diagnoses) due(source string, now time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now.Sub(d.last) < diagnosisAnyEvery || now.Sub(d.of[source]) < diagnosisEvery {
		return false
	}
	if d.of == nil {
		d.of = make(map[string]time.Time)
	}
	d.last, d.of[source] = now, now
	return true
}

// diagnose returns one sentence about a delivery that did not verify: what to change, if it is one of the usual causes.
// "" if it is not its turn. The sentence holds no secret, no digest and no byte of the delivery.
func (rc *Receiver) diagnose(gw *gateway.Gateway, src gateway.Source, d gateway.Delivery, now time.Time) string {
	scheme, ok := signature.Lookup(gw.Scheme)
	if !ok || len(d.Body) > diagnosisBody || !rc.diagnoses.due(src.ID, now) {
		return ""
	}
	return diagnose.Diagnose(diagnose.Input{
		Scheme: scheme, Request: gw.SignatureRequest(src, d), Secrets: gw.LiveSecrets(src), Now: now, Mode: src.Mode, Sender: src.CheckSender(d.Header),
		Attempts: diagnosisAttempts,
	}).Sentence
}
