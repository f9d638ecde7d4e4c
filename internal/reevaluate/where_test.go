package reevaluate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/reevaluate"
	"github.com/paidonce/paidonce/store"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func TestParseWhere(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		texts []string
		want  reevaluate.Where
	}{
		"none": {nil, reevaluate.Where{}},
		"one": {[]string{"type=charge.refunded"}, reevaluate.Where{
			ReevaluateFilter: store.ReevaluateFilter{Type: "charge.refunded"},
		}},
		"all in one": {
			[]string{"account=shop,source=s,gateway=stripe,type=t,outcome=flagged,reason=id_reused,event=evt_1,order=ord_1,since=24h,until=2026-11-30T11:00:00Z,mapping_version<3"},
			reevaluate.Where{
				ReevaluateFilter: store.ReevaluateFilter{
					Account: "shop", Sources: []string{"s"}, Type: "t", Outcome: store.Flagged, Reason: "id_reused", Event: "evt_1",
					Since: now.Add(-24 * time.Hour), Until: now.Add(-time.Hour), Mapping: 3,
				},
				Source: "s", Gateway: "stripe", Order: "ord_1",
			},
		},
		"several": {[]string{"source=s", "mapping_version<2"}, reevaluate.Where{
			ReevaluateFilter: store.ReevaluateFilter{Sources: []string{"s"}, Mapping: 2}, Source: "s",
		}},
		"a comma, an equals sign and a quote in a value": {[]string{`order=a,b=c'd",type=x`}, reevaluate.Where{
			ReevaluateFilter: store.ReevaluateFilter{Type: "x"}, Order: `a,b=c'd"`,
		}},
		"a reason that holds a colon": {[]string{"reason=unreadable: no amount"}, reevaluate.Where{
			ReevaluateFilter: store.ReevaluateFilter{Reason: "unreadable: no amount"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, err := reevaluate.ParseWhere(tt.texts, now)
			require.NoError(t, err)
			require.Equal(t, tt.want, w)
		})
	}
}

func TestParseWhereRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                       `"" is no term`,
		"sorce=s":                `"sorce=s" is no term`,
		"1=1 OR type=x":          "is no term",
		"type":                   "is no term",
		"type=":                  "type= has no value",
		"type=,source=x":         "type= has no value",
		"type<2":                 "type<: there are",
		"mapping_version=2":      "mapping_version=: there are",
		"mapping_version<0":      "want a number",
		"mapping_version<99999":  "want a number",
		"mapping_version<two":    "want a number",
		"type=a,type=b":          "type stands there twice",
		"outcome=paid":           "outcome=paid: there are [applied",
		"outcome=duplicate":      "outcome=duplicate: there are",
		"since=yesterday":        "since=yesterday: want a time",
		"gateway=nosuch":         `there is no gateway "nosuch"`,
		"source=api":             "source=api: what the merchant said itself",
		"account=a,what,since=x": "since=x: want a time",
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			_, err := reevaluate.ParseWhere([]string{text}, now)
			require.ErrorContains(t, err, want)
		})
	}
	_, err := reevaluate.ParseWhere([]string{"type=a", "type=a"}, now)
	require.ErrorContains(t, err, "twice")
}
