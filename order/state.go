package order

// state returns the first state whose condition holds.
func (s sums) state(price int64, canceled bool) State {
	switch {
	case s.risk > 0 && s.kept-s.risk < price: // to lose would leave it short
		return StateDisputed
	case s.kept >= price && !(canceled && s.kept == 0): // a free order can be canceled
		return StatePaid
	case s.captured > 0 && s.kept == 0 && s.lost > 0:
		return StateChargedBack
	case s.captured > 0 && s.kept == 0:
		return StateRefunded
	case s.captured >= price && s.kept > 0:
		return StatePartiallyRefunded
	case s.kept > 0:
		return StatePartiallyPaid
	case canceled:
		return StateCanceled
	case s.authorized >= price && s.authorized > 0:
		return StateAuthorized
	case s.live > 0 && s.closed == s.live:
		return State(s.last.Status) // failed, canceled and expired are the same words
	}
	return StatePending
}

// flags returns what is odd about the sums.
func (s sums) flags(v View, canceled bool) Flags {
	var f Flags
	if v.Registered && s.kept > v.Total {
		f |= FlagOverpaid
	}
	if v.Registered && s.captured > 0 && s.captured < v.Total {
		f |= FlagUnderpaid
	}
	if v.Registered && canceled && s.kept > 0 {
		f |= FlagPaidAfterCancel
	}
	if s.risk > 0 && v.State != StateDisputed {
		f |= FlagDisputeOpen
	}
	return f
}

// want returns what the merchant should do: a function of what is, not of how it came to be.
func (s sums) want(v View, canceled bool) Want {
	w := WantWait
	switch {
	case !v.Registered:
		return WantWait
	case v.State == StatePaid:
		w = WantGo
	case v.State == StatePartiallyRefunded && s.lost == 0:
		w = WantGo
	case v.State == StatePartiallyRefunded, v.State == StateDisputed && s.captured >= v.Total:
		w = WantPause
	case s.kept == 0 && s.ever:
		w = WantStop
	}
	if canceled && (w == WantGo || w == WantPause) {
		return WantWait
	}
	return w
}
