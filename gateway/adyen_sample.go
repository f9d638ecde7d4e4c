package gateway

import (
	"strings"
)

// sampleAdyen makes a notification of one item. HMACs are put in by signing.
func sampleAdyen(r SampleRequest) ([]byte, error) {
	t, ok := adyenTypeOf[r.Type]
	if !ok {
		return nil, unknownSample("adyen", r.Type, adyenNames())
	}
	r = r.withDefaults()
	n, err := adyenExponents.theirs(r.Amount.Minor, r.Amount.Currency)
	if err != nil {
		return nil, err
	}
	payment := r.paymentID("", 16)
	account := "TestMerchant"
	if len(r.Source.MerchantAccounts) > 0 {
		account = r.Source.MerchantAccounts[0]
	}
	item := fields{
		"additionalData": fields{}, "amount": fields{"currency": r.Amount.Currency, "value": n}, "eventCode": r.Type,
		"eventDate": r.At.Format("2006-01-02T15:04:05-07:00"), "merchantAccountCode": account,
		"merchantReference": r.Reference, "paymentMethod": "visa", "pspReference": payment, "reason": "", "success": "true",
	}
	if t.about != "" {
		item["originalReference"] = payment
		item["pspReference"] = r.Ref
		if r.Ref == "" {
			item["pspReference"] = derive(16, t.about, payment)
		}
	}
	if r.Type == "CHARGEBACK" {
		item["additionalData"] = fields{"disputeStatus": "Undefended", "defendable": "true"}
	}
	live := "false"
	if r.Mode == Live {
		live = "true"
	}
	envelope := fields{"live": live, "notificationItems": []any{fields{"NotificationRequestItem": item}}}
	return render(envelope, r.Set, func(path string) string {
		if path == "live" || strings.HasPrefix(path, "notificationItems.") {
			return path
		}
		return "notificationItems.0.NotificationRequestItem." + path
	})
}
