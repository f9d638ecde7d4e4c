package gateway

import "github.com/paidonce/paidonce/order"

// shopifyReader is an order while it is read.
type shopifyReader struct {
	draft
	status  *shopifyStatus
	total   order.Amount
	version int64
}

// snapshot sets every register of the payment.
func (d *shopifyReader) snapshot(f object) {
	none := order.Amount{Currency: d.total.Currency}
	captured, phase := none, d.status.phase
	switch {
	case d.status.name == "partially_paid":
		captured = d.paid(f.get("total_outstanding"), f.get("currency"))
	case d.status.captured:
		captured = d.total
	case d.status.phase == order.StatusAuthorized:
		d.add(order.Fact{Kind: order.KindAuthorized}, d.total)
	}
	if !d.status.captured && !f.get("cancelled_at").absent() && phase != order.StatusExpired {
		phase = order.StatusCanceled
	}
	d.phase(phase, d.version)
	d.add(order.Fact{Kind: order.KindCaptured, Seq: d.version}, captured)

	refunded := none
	for i, r := range f.get("refunds").elements(maxRefunds) {
		refunded.Minor = sum(refunded.Minor, d.refund(r, f.get("currency"), i))
	}
	if d.status.name == "refunded" {
		refunded.Minor = max(refunded.Minor, captured.Minor)
	}
	d.add(order.Fact{Kind: order.KindRefunded, Seq: d.version}, refunded)
	if d.status.name != "partially_paid" { // there the payment is not all of the order
		d.Own = &d.total
	}
}

// paid is the part of the total that is no longer outstanding.
func (d *shopifyReader) paid(outstanding, cur value) order.Amount {
	rest := d.decimal(outstanding, cur, "order.total_outstanding")
	if rest.Minor > d.total.Minor {
		d.fail("order.total_outstanding is more than order.total_price")
	}
	return order.Amount{Minor: d.total.Minor - rest.Minor, Currency: d.total.Currency}
}

// shopifyRefundStatus are the statuses of transactions.
// https://shopify.dev/docs/api/admin-rest/latest/resources/transaction
var shopifyRefundStatus = map[string]order.Status{
	"success": order.StatusOK, "pending": order.StatusPending, "failure": order.StatusFailed, "error": order.StatusFailed,
}

// refund adds what a refund gave back, by the ids of its transactions, and
// returns what of that is done. A refund without any only puts goods back.
func (d *shopifyReader) refund(v, cur value, i int) (done int64) {
	r := d.members(v, "a refund", "transactions")
	for _, t := range r.get("transactions").elements(maxRefunds) {
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
			done = sum(done, m.Minor)
		}
	}
	return done
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
