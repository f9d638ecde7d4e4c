package order

import "slices"

// Offline is the name space of the payments that incomes are: of money that no gateway has seen.
const Offline = "offline"

// Income is what is said about money that the merchant received outside of gateways, beside the fact that it came. That
// it is taken back is said with Voided and nothing else.
type Income struct {
	Kind IncomeKind `json:"kind,omitempty"`

	// Source is what was handed over, where that is in another currency than what it counts as.
	Source *Amount `json:"source,omitempty"`

	Voided bool `json:"voided,omitempty"`
}

// IncomeKind is how money came that no gateway has seen.
type IncomeKind string

// The kinds of incomes.
const (
	IncomeBankTransfer IncomeKind = "bank_transfer"
	IncomeCash         IncomeKind = "cash"
	IncomeCheque       IncomeKind = "cheque"
	IncomeCard         IncomeKind = "card" // at a terminal that is no source of ours
	IncomeOther        IncomeKind = "other"
)

// IncomeKinds returns every kind of income, in the order in which documents list them.
func IncomeKinds() []IncomeKind {
	return []IncomeKind{IncomeBankTransfer, IncomeCash, IncomeCheque, IncomeCard, IncomeOther}
}

func (i *Income) valid() bool {
	if i.Voided {
		return *i == Income{Voided: true}
	}
	return slices.Contains(IncomeKinds(), i.Kind) && (i.Source == nil || i.Source.countable() && i.Source.Minor > 0)
}
