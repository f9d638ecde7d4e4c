package gateway_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

// coverageTypes are one code for each way in which uncovered fields are read.
var coverageTypes = []string{"AUTHORISATION", "CHARGEBACK", "CANCEL_OR_REFUND", "CAPTURE_FAILED"}

func coverageBody(t *testing.T, source gateway.Source, typ string) []byte {
	return sample(t, gateway.SampleRequest{
		Source: source, Type: typ, Reference: "ord_7", At: now,
		Set: map[string]string{
			"additionalData": `{"disputeStatus":"Undefended","modification.action":"refund","authCode":"1234"}`,
			"operations":     `["CANCEL","REFUND"]`, "reason": "1234:4242:08/2031",
		},
	})
}

// meaning is what must not change with uncovered bytes: all but the misfit, and
// the amount that a misfit must not bring along.
type meaning struct {
	ID, Type, Reference, Ignored, Broken string
	Payment                              []string
	Strength                             order.Strength
	Facts                                []order.Fact
}

func meaningOf(ev order.Event) meaning {
	m := meaning{ev.ID, ev.Type, ev.Reference, ev.Ignored, ev.Broken, ev.Payment, ev.Strength, nil}
	for _, f := range ev.Facts {
		f.Misfit = ""
		m.Facts = append(m.Facts, f)
	}
	return m
}

// flips calls f with every body that differs from d's in one byte and still
// verifies, and the place that differs. It returns how many there were.
func flips(t *testing.T, source gateway.Source, d gateway.Delivery, f func(at int, events []order.Event, err error)) int {
	g := of(t, source)
	n := 0
	for i := range d.Body {
		for _, with := range []byte{d.Body[i] ^ 1, d.Body[i] ^ 0x20, d.Body[i] ^ 0x80, '0', '"', ',', '}', '\\', ' '} {
			if with == d.Body[i] {
				continue
			}
			bad := d
			bad.Body = bytes.Clone(d.Body)
			bad.Body[i] = with
			if g.Verify(source, bad, now) != nil {
				continue
			}
			n++
			events, err := g.Events(source, bad)
			f(i, events, err)
		}
	}
	return n
}

// TestAdyenUncoveredBytesGrantNothing changes every byte that the signature does
// not cover: id, type and facts stay, save that facts may become misfits.
func TestAdyenUncoveredBytesGrantNothing(t *testing.T) {
	t.Parallel()
	source := bareAdyen()
	for _, typ := range coverageTypes {
		t.Run(typ, func(t *testing.T) {
			t.Parallel()
			d := deliver(t, source, coverageBody(t, source, typ))
			good, err := gateway.Adyen.Events(source, d)
			require.NoError(t, err)
			want := meaningOf(good[0])
			flagged := 0
			n := flips(t, source, d, func(at int, events []order.Event, err error) {
				where := fmt.Sprintf("byte %d: …%s…", at, around(d.Body, at))
				require.NoError(t, err, where)
				require.Len(t, events, 1, where)
				require.Equal(t, want, meaningOf(events[0]), where)
				if events[0].Facts[0].Misfit != "" {
					flagged++
					require.Nil(t, events[0].Own, where)
				}
			})
			require.Greater(t, n, 500, "the test changed nothing")
			require.NotZero(t, flagged, "live was never flagged")
		})
	}
}

// TestAdyenSenderCoversThreeFields: with the sender's credentials the same
// holds for all but the three fields that are named.
func TestAdyenSenderCoversThreeFields(t *testing.T) {
	t.Parallel()
	source := adyenSource()
	believed := gateway.Adyen.Covers.Sender
	require.Equal(t, []string{"eventDate", "additionalData.disputeStatus", "additionalData.modification.action"}, believed)
	for _, typ := range coverageTypes {
		t.Run(typ, func(t *testing.T) {
			t.Parallel()
			d := deliver(t, source, coverageBody(t, source, typ))
			good, err := gateway.Adyen.Events(source, d)
			require.NoError(t, err)
			var exceptions [][2]int
			for _, key := range []string{"eventDate", "additionalData.disputeStatus", `additionalData.modification\.action`, "additionalData"} {
				r := gjson.GetBytes(d.Body, "notificationItems.0.NotificationRequestItem."+key)
				name := key[strings.LastIndexByte(strings.ReplaceAll(key, `\.`, "_"), '.')+1:]
				from := r.Index - len(name) - 3
				to := r.Index + len(r.Raw)
				if key == "additionalData" { // its name alone; what it holds is named above
					to = r.Index + 1
				}
				exceptions = append(exceptions, [2]int{from, to})
			}
			n := flips(t, source, d, func(at int, events []order.Event, err error) {
				where := fmt.Sprintf("byte %d: …%s…", at, around(d.Body, at))
				require.NoError(t, err, where)
				if slices.ContainsFunc(exceptions, func(e [2]int) bool { return at >= e[0] && at < e[1] }) {
					return
				}
				require.Equal(t, meaningOf(good[0]), meaningOf(events[0]), where)
			})
			require.Greater(t, n, 500, "the test changed nothing")
		})
	}
}

func around(body []byte, at int) []byte { return body[max(0, at-20):min(len(body), at+20)] }

// TestAdyenSecondCopies puts a second copy of every covered field into an item,
// under names that some reader would take for the field: either the signature
// refuses it, or nothing changes.
func TestAdyenSecondCopies(t *testing.T) {
	t.Parallel()
	source := bareAdyen()
	d := deliver(t, source, coverageBody(t, source, "AUTHORISATION"))
	good, err := gateway.Adyen.Events(source, d)
	require.NoError(t, err)
	verified := 0
	for field, value := range map[string]string{
		"pspReference": `"EVIL000000000000"`, "originalReference": `"EVIL000000000000"`, "merchantAccountCode": `"EVIL"`,
		"merchantReference": `"ord_evil"`, "amount": `{"currency":"EUR","value":9999999}`, "eventCode": `"CAPTURE"`, "success": `"false"`,
		"value": `9999999`, "currency": `"JPY"`, "NotificationRequestItem": `{"pspReference":"EVIL000000000000"}`,
		"notificationItems": `[]`,
	} {
		for _, name := range []string{
			field, strings.ToUpper(field), strings.ToLower(field), " " + field, field + "\\u0000",
			fmt.Sprintf(`\u%04x%s`, field[0], field[1:]), "amount." + field, strings.Replace(field, "e", `\u0065`, 1),
		} {
			for _, anchor := range []string{`"eventCode":`, `"additionalData":{`, `"currency":`, `"live":`, `"NotificationRequestItem":{`, `"NotificationRequestItem":`} {
				at := bytes.Index(d.Body, []byte(anchor))
				require.Positive(t, at, anchor)
				if strings.HasSuffix(anchor, "{") {
					at += len(anchor)
				}
				bad := d
				bad.Body = slices.Concat(d.Body[:at], []byte(`"`+name+`":`+value+`,`), d.Body[at:])
				require.True(t, gjson.ValidBytes(bad.Body))
				if gateway.Adyen.Verify(source, bad, now) != nil {
					continue
				}
				verified++
				events, err := gateway.Adyen.Events(source, bad)
				require.NoError(t, err)
				require.Len(t, events, 1)
				require.Equal(t, meaningOf(good[0]), meaningOf(events[0]), "%s before %s", name, anchor)
			}
		}
	}
	require.Greater(t, verified, 50, "the test changed nothing")
}
