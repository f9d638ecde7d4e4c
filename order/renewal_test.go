package order_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/order"
)

func TestRenewalValidate(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 10, 5, 0, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		renewal order.Renewal
		want    string // empty: it is valid
	}{
		"Start":       {order.Renewal{Of: []string{"club_1", "sub_1"}, Start: at}, ""},
		"On":          {order.Renewal{Of: []string{"sub_1"}, On: "2026-10-05"}, ""},
		"OfNothing":   {order.Renewal{Start: at}, "renewal of nothing"},
		"OfNoText":    {order.Renewal{Of: []string{"sub\x00"}, Start: at}, "renewal of"},
		"OfEmptyText": {order.Renewal{Of: []string{"sub_1", ""}, Start: at}, "renewal of"},
		"NoStart":     {order.Renewal{Of: []string{"sub_1"}}, "without a start"},
		"TwoStarts":   {order.Renewal{Of: []string{"sub_1"}, Start: at, On: "2026-10-05"}, "with two"},
		"OnNoDay":     {order.Renewal{Of: []string{"sub_1"}, On: "2026-02-30"}, `on "2026-02-30"`},
		"Before1970":  {order.Renewal{Of: []string{"sub_1"}, Start: at.AddDate(-60, 0, 0)}, "year 1966"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := order.Event{ID: "evt_1", Renewal: &tt.renewal}.Validate()
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tt.want)
		})
	}
}
