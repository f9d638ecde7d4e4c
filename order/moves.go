package order

//go:generate go test . -run ^TestMovesTable$ -update

// Causes is a set of kinds of things that can move an order.
type Causes uint16

// The causes.
const (
	CauseAuthorized    Causes = 1 << iota // authorised, or still being processed
	CauseCaptured                         // captured
	CauseCaptureFailed                    // a capture undone, or a captured total that fell
	CauseRefunded                         // refunded
	CauseRefundFailed                     // a refund undone, or a refunded total that fell
	CauseDisputed                         // a dispute opened
	CauseWon                              // a dispute won
	CauseLost                             // a dispute lost
	CauseClosed                           // a payment failed, expired or was canceled
	CauseOrder                            // the order itself: registered, its total, canceled
	CauseLink                             // payments came to the order or left it, or a checkout's word about them gave way to the gateway's
)

// CausesOf returns what e can do to the order of its payment. It knows e alone. Its caller adds [CauseLink] where the
// event brought a payment to the order or took one away, or ended that a payment counts as its checkout confirmed it
// ([Ledger.Confirming]): then the whole payment moves, not only e's facts.
func CausesOf(e Event) Causes {
	var c Causes
	if e.Command != nil && e.Command.touchesOrder() {
		c |= CauseOrder
	}
	for _, f := range e.Facts {
		if f.Misfit == "" {
			c |= f.causes()
		}
	}
	return c
}

// causes: where a gateway gives versions, what it said last holds, so that a total may fall and an item may go back.
func (f Fact) causes() Causes {
	switch f.Kind {
	case KindAuthorized:
		return CauseAuthorized
	case KindReleased:
		return CauseRefundFailed // less of what is booked as refunded was money
	case KindCaptured:
		return f.moneyCauses(CauseCaptured, CauseCaptureFailed)
	case KindRefunded:
		return f.moneyCauses(CauseRefunded, CauseRefundFailed)
	case KindDisputed:
		switch f.Status {
		case StatusOpen:
			return CauseDisputed
		case StatusLost:
			return CauseLost
		}
		return CauseWon
	case KindPhase:
		if (Phase{Status: f.Status}).closed() {
			return CauseClosed
		}
		return CauseAuthorized
	}
	return 0
}

func (f Fact) moneyCauses(happened, undone Causes) Causes {
	switch {
	case f.Ref != "" && f.Status == StatusOK:
		return happened
	case f.Ref != "" && f.Status == StatusFailed:
		return undone
	case f.Seq > 0:
		return happened | undone
	}
	return happened
}

// Unexpected reports whether nothing among c can move an order from one state to the other, neither at once nor by
// several of them, one after another: a bug of ours, or a gateway that does what it never did. The move is true all
// the same; it is written, flagged and looked at. The table of moves is generated: see moves.txt.
func Unexpected(from, to State, c Causes) bool {
	a, b := stateIndex(from), stateIndex(to)
	if a == b || c&CauseLink != 0 {
		return false
	}
	if a < 0 || b < 0 {
		return true
	}
	reached := uint16(1) << a
	for grown := true; grown; {
		grown = false
		for i := range moves {
			for j := range moves[i] {
				if reached&(1<<i) != 0 && reached&(1<<j) == 0 && moves[i][j]&c != 0 {
					reached |= 1 << j
					grown = true
				}
			}
		}
	}
	return reached&(1<<b) == 0
}

// UnexpectedChange is [Unexpected] for two views, for callers that do not know whether the event touched the order's
// own inputs: where the registration, the total or the currency changed, [CauseOrder] is among the causes.
func UnexpectedChange(before, after View, c Causes) bool {
	if before.Registered != after.Registered || before.Total != after.Total || before.Currency != after.Currency {
		c |= CauseOrder
	}
	return Unexpected(before.State, after.State, c)
}

func stateIndex(s State) int {
	for i, t := range States() {
		if s == t {
			return i
		}
	}
	return -1
}
