package gateway

// all is the registry, by title: a new gateway is a file of its own and a line here.
var all = []*Gateway{
	Worldpay,
	Adyen,
	AdyenPlatform,
	Braintree,
	Checkout,
	Clip,
	CoinbaseCommerce,
	Conekta,
	DLocal,
	EBANX,
	FlutterwaveV4,
	FlutterwaveV3,
	GoCardless,
	Klarna,
	Kushki,
	LemonSqueezy,
	MercadoPago,
	Midtrans,
	Mollie,
	MollieClassic,
	Openpay,
	Paddle,
	PagBank,
	PayPal,
	Paystack,
	PayULatam,
	Plaid,
	Primer,
	Razorpay,
	Redsys,
	Shopify,
	Square,
	Standard,
	Stripe,
	Wompi,
	Xendit,
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
