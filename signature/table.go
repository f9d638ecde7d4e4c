package signature

import (
	"slices"
	"time"
)

// fiveMinutes is 300 s in either direction: the default of Stripe's libraries
// (which look at the past alone) and of those of Standard Webhooks.
const fiveMinutes = 300 * time.Second

// table holds every scheme, by what is signed. A gateway that signs like one of
// these is a new row in one of the files named table_….go; it needs code only if
// the parts of its message, the form of its key or the place of its signature are
// new.
var table = slices.Concat(
	messageTable,   // the body with a time, an id, a URL
	bodyTable,      // the body alone
	fieldTable,     // fields inside the body
	publicKeyTable, // by a private key
	tokenTable,     // nothing: a shared token is sent along
)
