// Package outbound calls gateways: it asks their APIs about what a webhook only
// named, and finds the public keys that some of them sign with. It guarantees:
//
//   - a call goes to the source's base URL by HTTPS and to a public address, or
//     nowhere; api_allow_private lifts both. The address is judged when it is
//     connected to, no proxy is used and no redirect is followed, so credentials
//     reach no other host;
//   - a source never calls more often than its bucket allows, never before the
//     time that the gateway asked it to wait, and leaves a host alone that does
//     not answer. Who must wait is turned away with the time to come back
//     ([Error].After), and holds no worker meanwhile;
//   - an answer is bounded in time and size, also once it is unpacked;
//   - no error, log or metric holds a credential, a query or a byte of a body.
//
// What an answer means is package gateway's business, and what follows from an
// error the caller's.
package outbound
