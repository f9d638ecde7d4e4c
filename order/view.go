package order

// Order is everything that decides what an order is: what the merchant said, and its payments.
type Order struct {
	Registered bool   // by the merchant, through our API
	Total      int64  // in minor units of Currency; read only if Registered
	Currency   string // ISO 4217
	Canceled   bool   // by the merchant, through our API

	// Create lets a gateway register the order: its total is then the greatest own amount of its payments, until the
	// merchant registers it.
	Create bool

	// Marks are flags that cannot be derived from the payments and are kept beside them.
	Marks Flags

	// Dismissed are flags that a person has dealt with: they are not shown until they arise anew. See [Order.Recall].
	Dismissed Flags

	// Payments are the ledgers of the order's payments. The key tells them apart, and nothing here depends on it otherwise. It
	// is no gateway's id: two gateways may call two payments the same.
	Payments map[string]*Ledger
}

// View is what an order is. It is comparable: two views are the same if they are equal.
// Amounts are in minor units of Currency, summed over the payments; each sum stops one below [All].
type View struct {
	State      State  `json:"state"`
	Flags      Flags  `json:"flags"`
	Want       Want   `json:"want"`
	Registered bool   `json:"registered"` // by the merchant, or by a gateway's amount where that is allowed
	Total      int64  `json:"total"`      // 0 of a stub, whose total is unknown
	Currency   string `json:"currency"`   // empty of a stub: each of its payments shows its own

	Captured   int64 `json:"captured"`
	Refunded   int64 `json:"refunded"` // given back by the merchant
	Lost       int64 `json:"lost"`     // taken back: lost disputes and reversals
	Kept       int64 `json:"kept"`     // captured, and neither refunded nor lost
	AtRisk     int64 `json:"at_risk"`  // of what is kept, in open disputes
	Authorized int64 `json:"authorized"`
}

// View folds the order. It is a pure function: neither the iteration of a map nor the history of o matters.
func (o *Order) View() View {
	v := View{Registered: o.Registered, Total: o.Total, Currency: o.Currency, Flags: o.Marks}
	own, known := o.own()
	switch {
	case o.Registered:
		if o.Create && known && own != (Amount{o.Total, o.Currency}) {
			v.Flags |= FlagTotalDiffers
		}
	case o.Create && known:
		v.Registered, v.Total, v.Currency = true, own.Minor, own.Currency
	default:
		v.Total, v.Currency = 0, ""
		v.Flags |= FlagUnregistered
	}

	s := sums{}
	for _, l := range o.Payments {
		one, odd := l.sums(v.Registered, v.Currency)
		s = s.plus(one)
		v.Flags |= l.Flags | odd
	}
	s = s.bounded()
	v.Captured, v.Refunded, v.Lost = s.captured, s.refunded, s.lost
	v.Kept, v.AtRisk, v.Authorized = s.kept, s.risk, s.authorized

	price := v.Total
	if !v.Registered {
		price = All // what a stub costs is unknown: no amount is enough
	}
	v.State = s.state(price, o.Canceled)
	v.Flags |= s.flags(v, o.Canceled)
	v.Want = s.want(v, o.Canceled)
	v.Flags &^= o.Dismissed
	return v
}

// Wanted is what a merchant who was told t should do. It is Want, but for one who was told of the order before and of whose money
// nothing is left, although by what the payments say none was ever here: it was linked to another order, only the checkout had told of
// it, or nothing had to be paid and now has. What was delivered for it is taken back, as if the money had gone.
func (v View) Wanted(t Told) Want {
	if v.Want == WantWait && v.Kept == 0 && t != ToldNothing {
		return WantStop
	}
	return v.Want
}

// moneyFlags are about sums: they arise anew when the sums change.
const moneyFlags = FlagOverpaid | FlagUnderpaid | FlagOverRefunded | FlagDisputeOpen | FlagPaidAfterCancel | FlagAmountUnknown |
	FlagCurrencyMismatch | FlagTotalDiffers

// Recall ends the dismissal of flags that arise anew: those that an event raised, those about sums that are no longer
// what they were before, and those that do not hold any more.
func (o *Order) Recall(before View, raised Flags) {
	if o.Dismissed == 0 {
		return
	}
	shown := *o
	shown.Dismissed = 0
	now := shown.View()
	o.Dismissed &^= raised
	if now.sums() != before.sums() {
		o.Dismissed &^= moneyFlags
	}
	o.Dismissed &= now.Flags
}

// sums are the amounts of a view.
func (v View) sums() [7]int64 {
	return [...]int64{v.Total, v.Captured, v.Refunded, v.Lost, v.Kept, v.AtRisk, v.Authorized}
}

// Raised returns the flags that e raises by itself on an order in that currency, whether or not they are there already.
func Raised(e Event, currency string) Flags {
	var f Flags
	for _, fact := range e.Facts {
		switch {
		case fact.Misfit == MisfitMode:
			f |= FlagModeMismatch
		case fact.Misfit == MisfitAccount:
			f |= FlagAccountMismatch
		case fact.Currency != "" && currency != "" && fact.Currency != currency:
			f |= FlagCurrencyMismatch
		}
	}
	return f
}

// own returns the greatest amount that a payment has of its own.
func (o *Order) own() (greatest Amount, known bool) {
	for _, l := range o.Payments {
		if l.Own != nil && (!known || l.Own.compare(greatest) > 0) {
			greatest, known = *l.Own, true
		}
	}
	return greatest, known
}
