package gateway

import (
	"slices"

	"github.com/paidonce/paidonce/order"
)

// Stages of the life of a payment, a capture or a refund, where dates are not
// believed: what is undone comes after what was done.
const (
	adyenDone   = 1
	adyenUndone = 2
)

// seq orders the events about one thing: by their date in milliseconds, or by
// the stage where the sender's credentials do not vouch for dates.
func (e *adyenEvent) seq(stage int64) int64 {
	if e.s.Basic == "" {
		return stage
	}
	if e.date.IsZero() {
		e.fail("eventDate is missing or no time")
	}
	return max(0, e.date.UnixMilli())
}

// money reads the amount of the item.
func (e *adyenEvent) money() order.Amount {
	o, cur := e.currency()
	if e.broken() {
		return order.Amount{}
	}
	n, err := adyenExponents.amount(o.get("value"), cur)
	if err != nil {
		e.fail("amount.value: %v", err)
	}
	return order.Amount{Minor: n, Currency: cur}
}

// currency reads amount without its value: a cancellation has none that counts.
func (e *adyenEvent) currency() (object, string) {
	o, err := e.o.get("amount").members([]string{"value", "currency"})
	if err != nil {
		e.fail("amount %v", err)
		return object{}, ""
	}
	cur, err := currency(o.get("currency"))
	if err != nil {
		e.fail("amount.currency: %v", err)
	}
	return o, cur
}

// orAll reads the amount; 0 is everything there is.
func (e *adyenEvent) orAll() order.Amount {
	m := e.money()
	if m.Minor == 0 {
		m.Minor = order.All
	}
	return m
}

// everything is the amount of what undoes the whole payment.
func (e *adyenEvent) everything() order.Amount {
	_, cur := e.currency()
	return order.Amount{Minor: order.All, Currency: cur}
}

func (e *adyenEvent) add(f order.Fact, m order.Amount) {
	f.Amount, f.Currency = m.Minor, m.Currency
	e.Facts = append(e.Facts, f)
}

func (e *adyenEvent) phase(status order.Status, stage int64) {
	e.Facts = append(e.Facts, order.Fact{Kind: order.KindPhase, Status: status, Seq: e.seq(stage)})
}

// authorisation: where Adyen captures by itself, the authorised amount is taken
// for captured. It is a running total, so a CAPTURE that follows, by its id,
// does not add to it.
func (e *adyenEvent) authorisation() {
	m := e.money()
	e.Own = &m
	if !e.success {
		e.phase(order.StatusFailed, adyenDone)
		return
	}
	e.phase(order.StatusAuthorized, adyenDone)
	e.add(order.Fact{Kind: order.KindAuthorized}, m)
	if e.s.Capture != CaptureManual {
		e.add(order.Fact{Kind: order.KindCaptured}, m)
	}
}

func (e *adyenEvent) pending() {
	if e.success {
		e.phase(order.StatusProcessing, adyenDone)
	}
}

// expired: the phase alone. It never undoes money, so a rest that expires after
// a partial capture does no harm.
func (e *adyenEvent) expired() {
	if e.success {
		e.phase(order.StatusExpired, adyenUndone)
	}
}

func (e *adyenEvent) capture() { e.item(order.KindCaptured) }
func (e *adyenEvent) refund()  { e.item(order.KindRefunded) }

// item: one capture or refund by its id, made or refused.
func (e *adyenEvent) item(kind order.Kind) {
	status := order.StatusOK
	if !e.success {
		status = order.StatusDenied
	}
	e.add(order.Fact{Kind: kind, Ref: e.psp, Status: status, Seq: e.seq(adyenDone)}, e.money())
}

// captureFailed and refundFailed: success is "true" in them, and means nothing.
// They carry the pspReference of what failed.
func (e *adyenEvent) captureFailed() {
	e.add(order.Fact{Kind: order.KindCaptured, Ref: e.psp, Status: order.StatusFailed, Seq: e.seq(adyenUndone)}, e.money())
}

func (e *adyenEvent) refundFailed() {
	e.add(order.Fact{Kind: order.KindRefunded, Ref: e.psp, Status: order.StatusFailed, Seq: e.seq(adyenUndone)}, e.money())
}

// canceled: the phase, and a failed capture of everything, for an automatic
// capture that was assumed and now never happens.
func (e *adyenEvent) canceled() {
	if !e.success {
		return
	}
	e.phase(order.StatusCanceled, adyenUndone)
	e.add(order.Fact{Kind: order.KindCaptured, Ref: e.psp, Status: order.StatusFailed, Seq: e.seq(adyenUndone)}, e.everything())
}

// cancelOrRefund: modification.action says which. Without it both are said: the
// refund counts only as far as something was captured, and the phase only where
// nothing was.
func (e *adyenEvent) cancelOrRefund() {
	if !e.success {
		return
	}
	refund := order.Fact{Kind: order.KindRefunded, Ref: e.psp, Status: order.StatusOK, Seq: e.seq(adyenDone)}
	switch e.said("modification.action") {
	case "cancel":
		e.canceled()
	case "refund":
		e.add(refund, e.orAll())
	default:
		e.phase(order.StatusCanceled, adyenUndone)
		e.add(refund, e.everything())
	}
}

// said is a text in additionalData, "" where the sender's credentials do not
// vouch for it.
func (e *adyenEvent) said(name string) string {
	if e.s.Basic == "" || e.o.get("additionalData").absent() {
		return ""
	}
	o, err := e.o.get("additionalData").members([]string{name})
	if err != nil {
		e.fail("additionalData %v", err)
		return ""
	}
	return o.get(name).Str
}

// adyenDispute: all events of one dispute share its pspReference, and their order is
// the stage, with or without dates. A dispute is won only if success says so.
func adyenDispute(stage int64, status order.Status) func(*adyenEvent) {
	return func(e *adyenEvent) {
		if status == order.StatusWon && !e.success {
			return
		}
		e.add(order.Fact{Kind: order.KindDisputed, Ref: e.psp, Status: status, Seq: stage}, e.orAll())
	}
}

// chargeback: the money is gone, and may come back while disputeStatus says that
// the case is not closed. (Brazil sends none.)
func (e *adyenEvent) chargeback() {
	status := order.StatusLost
	if slices.Contains([]string{"Undefended", "Pending", "Responded"}, e.said("disputeStatus")) {
		status = order.StatusOpen
	}
	adyenDispute(2, status)(e)
}
