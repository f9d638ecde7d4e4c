package gateway

// all is the registry: a new gateway is a file of its own and a line here.
var all = []*Gateway{
	Stripe,
	Adyen,
	Standard,
	MercadoPago,
	Shopify,
	MollieClassic,
	Mollie,
	GoCardless,
	Openpay,
	Clip,
	EBANX,
	Plaid,
	Xendit,
	FlutterwaveV3,
	Razorpay,
	PayPal,
	DLocal,
	Kushki,
	PayULatam,
	Paddle,
	Square,
	Midtrans,
	Wompi,
	FlutterwaveV4,
	Checkout,
	Braintree,
	Paystack,
	Redsys,
	LemonSqueezy,
	CoinbaseCommerce,
	AdyenPlatform,
	Primer,
	Worldpay,
	Conekta,
	Klarna,
	PagBank,
}

// Lookup returns the gateway of that name, and reports whether there is one.
func Lookup(name string) (*Gateway, bool) {
	for _, g := range all {
		if g.Name == name {
			return g, true
		}
	}
	return nil, false
}

// All returns every gateway, in the order in which they are documented.
func All() []*Gateway {
	return append([]*Gateway(nil), all...)
}
