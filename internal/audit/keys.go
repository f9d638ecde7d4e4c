package audit

import (
	"net/http"

	"github.com/google/uuid"

	"github.com/paidonce/paidonce/store"
)

// The states of idempotency keys.
const (
	keyProcessing = "PROCESSING"
	keyCompleted  = "COMPLETED"
	keyFailed     = "FAILED"
)

// keys checks that what was done under a key has its answer, or says that none was kept, and has made what it says it made.
func (r *run) keys(page []store.AuditKey) error {
	for _, k := range page {
		r.sum.Keys++
		d := Difference{Kind: KeyAnswer, Subject: "idempotency key " + k.Key + " (" + k.ID.String() + ")"}
		switch {
		case k.Status == keyCompleted && (k.Code < 100 || k.Code > 999):
			d.Says = "It is completed, and its answer has no status."
		case k.Status == keyCompleted && !k.BodyFits:
			d.Says = "What is stored of its answer to be queried is not what is stored to be sent."
		case k.Status == keyCompleted && k.Sealed && !k.Raw:
			d.Says = "Its answer is encrypted, and is not there."
		case (k.Status == keyProcessing || k.Status == keyFailed) && k.Answered:
			d.Says = "It is not completed, and has an answer."
		case k.Status == keyCompleted && k.Code < http.StatusBadRequest && k.ResourceType != "" && (k.Resource == uuid.Nil || !k.ResourceThere):
			d.Kind, d.Says, d.Expected = KeyResource, "It was done, and what it has made is not there.", k.ResourceType+" "+idText(k.Resource)
		default:
			continue
		}
		if err := r.found(d); err != nil {
			return err
		}
	}
	r.progress(len(page))
	return nil
}
