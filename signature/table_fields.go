package signature

import "crypto/sha256"

var fieldTable = []*Scheme{
	// The signature of each item is in the body, and covers eight of its fields.
	{
		Name:   "adyen",
		Spec:   "https://docs.adyen.com/development-resources/webhooks/secure-webhooks/verify-hmac-signatures",
		family: &adyenItems{keys: &keyring{parse: hexKey("", sha256.New, sha256.Size)}},
	},
}
