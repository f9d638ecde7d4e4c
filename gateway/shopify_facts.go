package gateway

import (
	"strings"

	"github.com/paidonce/paidonce/order"
)

// shopifyReader is an order while it is read.
type shopifyReader struct {
	draft
	status  *shopifyStatus
	total   order.Amount
	version int64
}

// shopifyRefunds is what the refunds of an order come to.
type shopifyRefunds struct{ done, tried int64 }

// snapshot sets every register of the payment.
func (d *shopifyReader) snapshot(f object) {
	none := order.Amount{Currency: d.total.Currency}
	var refunds shopifyRefunds
	for i, r := range d.list(f.get("refunds"), "order.refunds", maxRefunds) {
		d.refund(r, f.get("currency"), i, &refunds)
	}
	captured, phase := none, d.status.phase
	switch {
	case d.status.name == "refunded":
		captured = d.total
	case d.status.captured:
		captured = d.paid(f, refunds)
	case d.status.phase == order.StatusAuthorized:
		d.add(order.Fact{Kind: order.KindAuthorized}, d.total)
	}
	if !d.status.captured && !f.get("cancelled_at").absent() && phase != order.StatusExpired {
		phase = order.StatusCanceled
	}
	d.phase(phase, d.version)
	d.add(order.Fact{Kind: order.KindCaptured, Seq: d.version}, captured)

	refunded := order.Amount{Minor: refunds.done, Currency: none.Currency}
	if d.status.name == "refunded" {
		refunded.Minor = max(refunded.Minor, captured.Minor)
	}
	d.add(order.Fact{Kind: order.KindRefunded, Seq: d.version}, refunded)
	if d.status.name != "partially_paid" { // there the payment is not all of the order
		d.Own = &d.total
	}
}

// paid is what was received. total_price is the total as it was at first: what was
// taken out of the order later, by an edit or a refund, is missing in
// current_total_price, and what is still to be paid of that is outstanding (below
// zero if too much was paid). What was received is what is no longer outstanding,
// and what was given back. Where nothing is outstanding, refunds that are under way
// or failed took their goods out all the same.
func (d *shopifyReader) paid(f object, refunds shopifyRefunds) order.Amount {
	current, cur := d.total.Minor, f.get("currency")
	if v := f.get("current_total_price"); !v.absent() {
		current = sum(d.decimal(v, cur, "order.current_total_price").Minor, refunds.done)
	}
	rest := f.get("total_outstanding")
	if rest.absent() && d.status.name != "partially_paid" {
		rest = textValue("0")
	}
	over := strings.HasPrefix(rest.Str, "-")
	if over {
		rest = textValue(rest.Str[1:])
	}
	outstanding := d.decimal(rest, cur, "order.total_outstanding").Minor
	switch {
	case over:
		current = sum(current, outstanding)
	case outstanding == 0:
		current = sum(current, refunds.tried)
	case outstanding > current:
		d.fail("order.total_outstanding is more than the order's total")
	default:
		current -= outstanding
	}
	return order.Amount{Minor: min(d.total.Minor, current), Currency: d.total.Currency}
}

// shopifyRefundStatus are the statuses of transactions.
// https://shopify.dev/docs/api/admin-rest/latest/resources/transaction
var shopifyRefundStatus = map[string]order.Status{
	"success": order.StatusOK, "pending": order.StatusPending, "failure": order.StatusFailed, "error": order.StatusFailed,
}

// refund adds what a refund gave back, by the ids of its transactions. A refund
// without any only puts goods back.
func (d *shopifyReader) refund(v, cur value, i int, all *shopifyRefunds) {
	r := d.members(v, "a refund", "transactions")
	for _, t := range d.list(r.get("transactions"), "the transactions of a refund", maxRefunds) {
		f := d.members(t, "a transaction", "id", "kind", "status", "amount", "currency")
		if f.get("kind").Str != "refund" {
			continue
		}
		id, ok := f.get("id").name()
		status, known := shopifyRefundStatus[f.get("status").Str]
		switch of := f.get("currency"); {
		case !ok:
			d.fail("a transaction of refund %d has no id", i)
		case !known:
			d.fail("a transaction of refund %d has a status that none has", i)
		case !of.absent() && of.Str != cur.Str:
			d.fail("a transaction of refund %d is in another currency than its order", i)
		}
		m := d.decimal(f.get("amount"), cur, "the amount of a refund")
		d.add(order.Fact{Kind: order.KindRefunded, Ref: id, Status: status, Seq: d.version}, m)
		if status == order.StatusOK {
			all.done = sum(all.done, m.Minor)
		} else {
			all.tried = sum(all.tried, m.Minor)
		}
	}
}

// sum adds two amounts, at most all that can be counted.
func sum(a, b int64) int64 {
	if a > order.All-1-b {
		return order.All - 1
	}
	return a + b
}

// attribute is the value of the note attribute called name.
func (d *shopifyReader) attribute(list value, name string) string {
	for _, v := range list.elements(maxRefunds) {
		o := d.members(v, "a note attribute", "name", "value")
		if o.get("name").Str == name {
			text, _ := o.get("value").name()
			return text
		}
	}
	return ""
}
