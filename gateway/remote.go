package gateway

// Remote says what verification needs from the network. Its functions are pure.
type Remote struct {
	// Live and Test are the base URLs of the API that is asked, as in [Fetch].
	Live, Test string

	// Key returns which public key a delivery says it was signed with, after
	// checking that it may be fetched at all (pinned hosts). The error is a
	// *signature.Error.
	Key func(Source, Delivery) (KeyRef, error)

	// Secret joins the key that was found (or a signing key) and what the source
	// is configured with to a secret of the scheme.
	Secret func(s Source, key string) string

	// Ask, if not nil, makes the call that has the gateway itself verify the
	// delivery, for sources that want that instead of Key; ok is false for all
	// others. Answered reads the answer: nil, or a *signature.Error.
	Ask func(Source, Delivery) (call Call, ok bool, err error)
	// Any other error means that the answer says nothing: nobody knows.
	Answered func(Answer) error

	// Example says where a receiver finds the public key of a source of
	// [Gateway].Example, which deliveries that are made name, and what is there:
	// simulators serve it.
	Example func(Source) (KeyRef, []byte)
}

// BaseURL is where the source's API is asked, without a slash at the end.
func (r *Remote) BaseURL(s Source) string { return baseURL(s, r.Live, r.Test) }

// KeyRef says where a public key is found: exactly one field is set.
type KeyRef struct {
	// URL of a PEM file of X.509 certificates (PayPal). The last part of
	// CommonName must fit the leaf's name: ".paypal.com".
	URL        string
	CommonName string

	// ID is the id of a JSON Web Key that the gateway's API is asked for (Plaid).
	ID string
}
