// Package processor takes events in and brings about what orders then owe their merchants.
//
// An [Ingester] enters events in the store: deliveries that come at the same time share a transaction, and each gets
// its answer when that has committed.
//
// [Workers] call merchants. What an order owes is a row in the database, claimed for the time of a lease, called
// without any transaction open, and settled where the claim still stands. The guarantees, each for any number of
// processes of which any may be killed at any moment:
//
//   - nothing owed is forgotten: an order that owes something carries the time at which it must be looked at, and a
//     clock in every process comes back to those whose time has passed;
//   - one order is never worked twice at once, and its effects are called in the order in which they became owed;
//   - an effect is called under one key, until the merchant says that it is done; after money went back that is
//     followed by a revoke, also where nobody knows whether the fulfilment arrived;
//   - a merchant that hangs or is slow does not make another wait.
//
// What is called is a [Fulfiller]: [Callback], which asks the merchant's own server, or a program's own code.
package processor
