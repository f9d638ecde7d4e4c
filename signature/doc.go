// Package signature answers one question: are these bytes really from the
// gateway?
//
// Each way of signing is a row of a table, a [Scheme]. A scheme belongs to a
// family, which is code; the row says which header, which key, which encoding,
// which parts of the request are signed. A gateway that signs like one we know
// is another row, in one of the files table_….go, and nothing else.
//
// The package is pure: no I/O, no clock, standard library only. Callers pass the
// request as it was received, the secrets that are live and the time, so every
// outcome can be written as a line of a test. It guarantees:
//
//   - nil means that a holder of one of the secrets signed what the scheme covers;
//   - every other outcome is an [*Error] with a [Reason], and no error holds a
//     secret, an expected digest or a byte of the request;
//   - digests, tokens and passwords are compared in constant time, and as decoded
//     bytes, never as text;
//   - an empty or malformed secret verifies nothing;
//   - what can be read in two ways is refused (a header sent twice, two
//     timestamps, a field of a form or a key of JSON that occurs twice), because
//     the code after this package might read it in the other way;
//   - the algorithm is never the sender's choice: a name in the request is compared
//     with the one that we take, or says which of two equally strong ways.
//
// # Secrets
//
// A secret is one string; during a rotation several are live. For most schemes it
// is the text that the gateway shows. The others:
//
//	adyen, adyen-platform         64 digits of hexadecimal
//	standard                      whsec_, whpk_ or whsk_ and base64
//	braintree                     public_key:private_key
//	dlocal                        x_login:secret_key
//	payu-latam                    MD5:api_key, SHA1:api_key, SHA256:api_key or
//	                              HMAC-SHA256:api_key:secret_key
//	conekta, ebanx, wise,         PEM: an RSA public key, or a certificate
//	midtrans-snap
//	paypal                        webhook_id: and PEM
//	plaid                         the JWK as JSON
//
// Where a gateway signs with a private key, that key in the same form signs and
// verifies nothing.
//
// # Policies
//
// Where gateways' own libraries differ, or say nothing, this is what we do:
//
//   - Time: of stripe, standard, paddle and plaid it may differ from now by 300 s in
//     either direction, in whole seconds, both ends included: the default of the
//     Stripe and Standard Webhooks libraries. Stripe's accept any time in the
//     future, Paddle's look back 5 s or not at all, Plaid's page speaks of the past
//     alone; a clock that far off hides replays. The time is checked after the
//     digest, so [Stale] and [Future] are only said of genuine requests.
//   - mercadopago, dlocal, kushki, paypal and midtrans-snap sign a time too, without
//     saying how old it may be when they try again hours or days later. It is
//     checked if the request brings a tolerance ([Request.Tolerance]), and not
//     otherwise. Primer's signedAt is inside the body and is not looked at.
//   - Timestamps are decimal digits: no sign, point, exponent, space, and no
//     leading zero. Libraries that parse and print the number again accept more;
//     no gateway sends more. Dates are RFC 3339 with a zone, which may lack its colon.
//     Kushki and Mercado Pago send milliseconds or seconds: from 10^11 on it is
//     milliseconds.
//   - Hexadecimal digests may be in upper or lower case: the bytes are compared. In
//     lower case alone where all of the gateway's libraries compare text (razorpay,
//     coinbase-commerce, paddle, mollie, mercadopago, braintree). Base64 is the
//     standard alphabet with its padding, no line breaks, unused bits zero; Redsys
//     uses both alphabets, with padding and without.
//   - A header that carries signatures or what they cover and that stands twice in
//     a request is refused, even if one of its lines is genuine, and so is the same
//     thing joined by a comma (two t of Stripe). One t is never tried with the v1
//     of another. Mollie alone may send its header several times, as its library
//     has it: all of them cover the same body.
//   - A list may carry signatures that nobody can check (unknown version, broken
//     encoding); they are passed over, and one that matches is enough: any v1 of
//     Stripe, any h1 of Paddle, either header of Primer. Of Braintree's pairs the
//     first under our public key counts, as in its libraries. Stripe's and Paddle's
//     lists have no spaces. More than [MaxElements] elements are refused.
//   - A form is read strictly: every element has a name and an equals sign, no name
//     occurs twice, no semicolon, no broken escape.
//   - JSON that signed fields are read from is one value in UTF-8, and no object on
//     the way to them has a key twice, also in another case. Numbers are signed with
//     the digits that stand there; a fraction or an exponent is refused where an
//     integer is signed. Midtrans's parts must be strings.
//   - Mercado Pago's data.id is tried in lower case, as the documentation has it, and
//     then as it stands, as its library of today has it.
//   - PayU signs 150.00 as 150.0 and 150.25 as 150.25; 150 is signed as 150.0, and
//     more than two decimals are refused.
//   - Wompi must list transaction.id, transaction.status and
//     transaction.amount_in_cents among the signed properties, or it is refused.
//   - Redsys's HMAC_SHA256_V1 and HMAC_SHA512_V2 are known, and a request is checked
//     by the one that it names alone.
//   - PayPal's certificate must be at one of PayPal's own URLs ([PayPalCertURL]),
//     and its algorithm SHA256withRSA.
//   - Plaid's keys with expired_at are refused, as Plaid's example does.
//   - Kushki's simple signature covers no body and is never looked at.
//   - worldpay (hexadecimal, the secret as it stands) and flutterwave-v4 (base64 of an
//     HMAC) rest on what could not be confirmed; whoever offers them should ask first.
//
// What a signature leaves out is told at the rows: some cover a few fields
// (midtrans, wompi, redsys …), some nothing of the body (mercadopago, xendit,
// flutterwave-v3).
package signature
