package signature

import (
	"crypto/sha256"
	"crypto/sha512"
)

// fieldTable are the schemes that sign some fields of the body and carry the
// signature inside it. What they leave out proves nothing.
var fieldTable = []*Scheme{
	// The signature of each item is in the body, and covers eight of its fields.
	{
		Name:   "adyen",
		Spec:   "https://docs.adyen.com/development-resources/webhooks/secure-webhooks/verify-hmac-signatures",
		family: &adyenItems{keys: &keyring{parse: hexKey("", sha256.New, sha256.Size)}},
	},
	{
		Name:   "braintree",
		Spec:   "https://developer.paypal.com/braintree/docs/guides/webhooks/parse",
		family: &braintree{keys: &keyring{parse: braintreeKey}},
	},
	{
		Name:   "midtrans",
		Spec:   "https://docs.midtrans.com/docs/https-notification-webhooks",
		family: &midtrans{keys: &keyring{parse: endKey(sha512.New)}},
	},
	{
		Name:   "wompi",
		Spec:   "https://docs.wompi.co/docs/colombia/eventos/",
		family: &wompi{keys: &keyring{parse: endKey(sha256.New)}},
	},
	{
		Name:   "payu-latam",
		Spec:   "https://developers.payulatam.com/latam/en/docs/integrations/webcheckout-integration/confirmation-page.html",
		family: &payU{keys: &keyring{parse: payUKey}},
	},
	{
		Name:   "redsys",
		Spec:   "https://pagosonline.redsys.es/desarrolladores-inicio/documentacion-operativa/firmar-una-operacion/",
		family: &redsys{keys: &keyring{parse: redsysKey}},
	},
}
