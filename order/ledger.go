package order

import (
	"maps"
	"slices"
)

// Ledger is what is known about one payment: a product of joins, so that facts may come in any order, more than once
// and in any batches. Every "last one" in it is a maximum over a whole tuple; no tie is left to arrival.
// The zero value is a payment of which nothing is known.
type Ledger struct {
	Money    map[string]*Money  `json:"money,omitempty"`    // by currency
	Disputes map[string]Dispute `json:"disputes,omitempty"` // by the dispute's id
	Phase    Phase              `json:"phase,omitzero"`
	Link     Link               `json:"link,omitzero"`   // which order it belongs to, as the gateways' events say
	Person   Link               `json:"person,omitzero"` // as a person said, if one did
	IDs      []string           `json:"ids,omitempty"`   // every id it is known under, sorted; the least one names it
	Own      *Amount            `json:"own,omitempty"`   // its own amount; the greatest that was told
	Flags    Flags              `json:"flags,omitempty"`

	// Confirmed is what the merchant's checkout was answered, by currency. It counts until the gateway has said
	// anything about the payment itself.
	Confirmed map[string]Confirmed `json:"confirmed,omitempty"`
}

// Confirmed is what a checkout was answered: the greatest amounts, in minor units.
type Confirmed struct {
	Authorized int64 `json:"authorized,omitempty"`
	Captured   int64 `json:"captured,omitempty"`
}

func (c Confirmed) join(d Confirmed) Confirmed {
	return Confirmed{max(c.Authorized, d.Authorized), max(c.Captured, d.Captured)}
}

// Money is what is known about a payment in one currency. All amounts are in minor units.
type Money struct {
	Authorized    int64           `json:"authorized,omitempty"` // maximum
	Captures      map[string]Item `json:"captures,omitempty"`
	CapturedTotal Total           `json:"captured_total,omitzero"`
	Refunds       map[string]Item `json:"refunds,omitempty"`
	RefundedTotal Total           `json:"refunded_total,omitzero"`
	Released      int64           `json:"released,omitempty"` // maximum
	Ever          bool            `json:"ever,omitempty"`     // the captured total was above 0 once
}

// Total is a running total: the maximum of (Seq, Amount). With versions that is the latest, without them the greatest.
type Total struct {
	Seq    int64 `json:"seq,omitempty"`
	Amount int64 `json:"amount,omitempty"`
}

// Item is one capture or refund: the maximum of (Seq, Status), the greatest Amount, and whatever held once.
type Item struct {
	Seq    int64  `json:"seq,omitempty"`
	Status Status `json:"status"`
	Amount int64  `json:"amount,omitempty"`
	Forced bool   `json:"forced,omitempty"`
	Was    bool   `json:"was,omitempty"` // it was ok once
}

// Dispute is one dispute: the maximum of the whole tuple.
type Dispute struct {
	Seq      int64  `json:"seq,omitempty"`
	Status   Status `json:"status"`
	Amount   int64  `json:"amount,omitempty"`
	Currency string `json:"currency,omitempty"`
	Via      bool   `json:"via,omitempty"`
}

// Phase is the payment as a whole: the maximum of (Seq, Status).
type Phase struct {
	Seq    int64  `json:"seq,omitempty"`
	Status Status `json:"status,omitempty"`
}

// NewLedger returns the ledger of a payment of which nothing is known.
func NewLedger() *Ledger { return &Ledger{} }

// JoinEvent joins everything that e says about its payment: facts, ids, link and own amount. Of a payment that only
// tests, or belongs to somebody else, the amount must not become an order's total, so e's own amount is left out
// where a fact of e is a misfit.
func (l *Ledger) JoinEvent(e Event) {
	misfit := false
	for _, f := range e.Facts {
		if e.Command != nil && e.Command.Confirm {
			l.confirm(f)
		} else {
			l.Join(f)
		}
		misfit = misfit || f.Misfit != ""
	}
	for _, id := range e.Payment {
		l.addID(id)
	}
	l.setLinks(l.Links().Join(e.Links()))
	if e.Own != nil && !misfit && e.Own.countable() && e.Own.Minor > 0 {
		l.joinOwn(*e.Own)
	}
}

// Join joins one fact. A fact that [Fact.Validate] refuses says nothing and changes nothing: whoever reads facts from
// outside checks them first and keeps the event aside.
func (l *Ledger) Join(f Fact) {
	if f.Validate() != nil {
		return
	}
	switch f.Misfit {
	case MisfitMode:
		l.Flags |= FlagModeMismatch
		return
	case MisfitAccount:
		l.Flags |= FlagAccountMismatch
		return
	}
	switch f.Kind {
	case KindAuthorized:
		m := l.money(f.Currency)
		m.Authorized = max(m.Authorized, f.Amount)
	case KindReleased:
		m := l.money(f.Currency)
		m.Released = max(m.Released, f.Amount)
	case KindCaptured:
		m := l.money(f.Currency)
		if f.Ref == "" {
			m.CapturedTotal = m.CapturedTotal.join(Total{f.Seq, f.Amount})
			m.Ever = m.Ever || f.Amount > 0
		} else {
			joinInto(&m.Captures, f.Ref, f.item(), Item.join)
		}
	case KindRefunded:
		m := l.money(f.Currency)
		if f.Ref == "" {
			m.RefundedTotal = m.RefundedTotal.join(Total{f.Seq, f.Amount})
		} else {
			joinInto(&m.Refunds, f.Ref, f.item(), Item.join)
		}
	case KindDisputed:
		joinInto(&l.Disputes, f.Ref, Dispute{f.Seq, f.Status, f.Amount, f.Currency, f.Via}, Dispute.join)
	case KindPhase:
		l.Phase = l.Phase.join(Phase{f.Seq, f.Status})
	}
}

// Merge joins everything that o knows: two ledgers turned out to be of one payment. o is not changed, and shares
// nothing with l afterwards.
func (l *Ledger) Merge(o *Ledger) {
	for cur, b := range o.Money {
		a := l.money(cur)
		a.Authorized = max(a.Authorized, b.Authorized)
		a.Released = max(a.Released, b.Released)
		a.Ever = a.Ever || b.Ever
		a.CapturedTotal = a.CapturedTotal.join(b.CapturedTotal)
		a.RefundedTotal = a.RefundedTotal.join(b.RefundedTotal)
		for ref, it := range b.Captures {
			joinInto(&a.Captures, ref, it, Item.join)
		}
		for ref, it := range b.Refunds {
			joinInto(&a.Refunds, ref, it, Item.join)
		}
	}
	for ref, d := range o.Disputes {
		joinInto(&l.Disputes, ref, d, Dispute.join)
	}
	l.Phase = l.Phase.join(o.Phase)
	l.setLinks(l.Links().Join(o.Links()))
	for cur, c := range o.Confirmed {
		joinInto(&l.Confirmed, cur, c, Confirmed.join)
	}
	for _, id := range o.IDs {
		l.addID(id)
	}
	if o.Own != nil {
		l.joinOwn(*o.Own)
	}
	l.Flags |= o.Flags
}

// Clone returns a copy that shares nothing with l.
func (l *Ledger) Clone() *Ledger {
	c := *l
	if l.Money != nil {
		c.Money = make(map[string]*Money, len(l.Money))
		for cur, m := range l.Money {
			n := *m
			n.Captures = maps.Clone(m.Captures)
			n.Refunds = maps.Clone(m.Refunds)
			c.Money[cur] = &n
		}
	}
	c.Disputes, c.Confirmed = maps.Clone(l.Disputes), maps.Clone(l.Confirmed)
	c.IDs = slices.Clone(l.IDs)
	if l.Own != nil {
		own := *l.Own
		c.Own = &own
	}
	return &c
}

// Links returns the two links of the payment.
func (l *Ledger) Links() Links { return Links{l.Link, l.Person} }

func (l *Ledger) setLinks(k Links) { l.Link, l.Person = k.Gateway, k.Person }

// confirm joins what a checkout was answered: that so much is authorized, or captured in all.
func (l *Ledger) confirm(f Fact) {
	if f.Validate() != nil || f.Misfit != "" || f.Amount == All {
		return
	}
	switch {
	case f.Kind == KindAuthorized:
		joinInto(&l.Confirmed, f.Currency, Confirmed{Authorized: f.Amount}, Confirmed.join)
	case f.Kind == KindCaptured && f.Ref == "":
		joinInto(&l.Confirmed, f.Currency, Confirmed{Captured: f.Amount}, Confirmed.join)
	}
}

// told reports whether the gateway has said anything about the payment.
func (l *Ledger) told() bool { return len(l.Money) > 0 || len(l.Disputes) > 0 || l.Phase.Status != "" }

// Confirming reports whether the payment counts as the checkout confirmed it, because its gateway has said nothing yet.
func (l *Ledger) Confirming() bool { return len(l.Confirmed) > 0 && !l.told() }

// EverCaptured reports whether money of the payment was captured once, whatever became of it, or a checkout says so.
func (l *Ledger) EverCaptured() bool {
	for _, m := range l.Money {
		if c, _ := m.captured(); c > 0 || m.ever() {
			return true
		}
	}
	if l.Confirming() {
		for _, c := range l.Confirmed {
			if c.Captured > 0 {
				return true
			}
		}
	}
	return false
}

func (l *Ledger) money(cur string) *Money {
	m := l.Money[cur]
	if m == nil {
		if l.Money == nil {
			l.Money = make(map[string]*Money, 1)
		}
		m = &Money{}
		l.Money[cur] = m
	}
	return m
}

func (l *Ledger) addID(id string) {
	if i, known := slices.BinarySearch(l.IDs, id); !known && id != "" && isText(id) {
		l.IDs = slices.Insert(l.IDs, i, id)
	}
}

func (l *Ledger) joinOwn(a Amount) {
	if l.Own == nil || a.compare(*l.Own) > 0 {
		l.Own = &a
	}
}

// joinInto joins v to what m has under ref, or puts it there. Maps are made when they are first needed, so that equal
// ledgers are equal in every bit.
func joinInto[V any](m *map[string]V, ref string, v V, join func(V, V) V) {
	if *m == nil {
		*m = make(map[string]V, 1)
	}
	if old, ok := (*m)[ref]; ok {
		v = join(old, v)
	}
	(*m)[ref] = v
}

func (f Fact) item() Item {
	return Item{Seq: f.Seq, Status: f.Status, Amount: f.Amount, Forced: f.Forced, Was: f.Status == StatusOK}
}
