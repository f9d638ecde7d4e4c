package outbound

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/signature"
)

// webKeyPath is where Plaid's API gives the key of an id.
// https://plaid.com/docs/api/webhooks/webhook-verification/#get-webhook-verification-key
const webKeyPath = "/webhook_verification_key/get"

const (
	// webKeyFresh is how often a key is looked at again: expired_at is only set
	// once it is no longer used.
	webKeyFresh = time.Hour

	// keepWebKey is how long it is used although it could not be looked at again.
	keepWebKey = 24 * time.Hour
)

// webKey describes how a JSON web key is found by its id.
func (v *Verifier) webKey(g *gateway.Gateway, s gateway.Source, ref gateway.KeyRef) wanted {
	t := target{gateway: g.Name, base: g.Remote.BaseURL(s)}
	return wanted{
		gateway: g.Name,
		name:    strings.Join([]string{g.Name, t.base, s.ID, s.ClientID, ref.ID}, "\n"),
		find: func(ctx context.Context, now time.Time) (found, error) {
			body, err := json.Marshal(map[string]string{"client_id": s.ClientID, "secret": s.ClientSecret, "key_id": ref.ID})
			if err != nil {
				return found{}, fmt.Errorf("ask %s for a key: %w", g.Name, err)
			}
			answer, err := v.client.ask(ctx, t, s, gateway.Call{
				Method: http.MethodPost, Path: webKeyPath, Header: http.Header{"Content-Type": {"application/json"}}, Body: body,
			})
			if err != nil {
				return found{}, err
			}
			return readWebKey(g, answer, ref.ID, now)
		},
	}
}

// readWebKey reads the answer that holds a key. An expired one signs nothing any
// more, so what it signed is not genuine.
func readWebKey(g *gateway.Gateway, answer []byte, id string, now time.Time) (found, error) {
	var whole struct {
		Key json.RawMessage `json:"key"`
	}
	var key struct {
		Kid       string          `json:"kid"`
		ExpiredAt json.RawMessage `json:"expired_at"`
	}
	if json.Unmarshal(answer, &whole) != nil || json.Unmarshal(whole.Key, &key) != nil || key.Kid != id {
		return found{}, &Error{Kind: Retry, Status: http.StatusOK, gateway: g.Name, text: "its answer is not the key that was asked for"}
	}
	if len(key.ExpiredAt) > 0 && string(key.ExpiredAt) != "null" {
		return found{}, &signature.Error{Scheme: g.Scheme, Reason: signature.Mismatch, Detail: "the key it is signed with has expired"}
	}
	return found{key: string(whole.Key), until: now.Add(keepWebKey), fresh: webKeyFresh}, nil
}
