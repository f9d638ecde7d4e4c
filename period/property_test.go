package period_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/paidonce/paidonce/period"
)

// zones with clocks that do unusual things around midnight, besides usual ones.
var zones = []string{
	"UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "America/Sao_Paulo", "America/Havana",
	"Africa/Cairo", "Asia/Beirut", "Asia/Amman", "America/St_Johns", "America/Asuncion", "Atlantic/Azores", "Asia/Tehran",
	"Pacific/Apia", "Pacific/Fakaofo", "Pacific/Kwajalein", "Pacific/Kiritimati", "Pacific/Kanton", "Africa/Monrovia",
	"Antarctica/Troll", "Asia/Pyongyang", "America/Scoresbysund", "Africa/Casablanca", "Asia/Gaza",
}

func drawDate(t *rapid.T, label string, lastYear int) period.Date {
	day := rapid.IntRange(0, (lastYear-1970)*365).Draw(t, label)
	return period.DateOf(time.Unix(int64(day)*86400, 0).UTC())
}

func drawSchedule(t *rapid.T) period.Schedule {
	z, err := time.LoadLocation(rapid.SampledFrom(zones).Draw(t, "zone"))
	require.NoError(t, err)
	s := period.Schedule{
		Interval: rapid.SampledFrom(period.Intervals).Draw(t, "interval"),
		Every:    rapid.OneOf(rapid.Just(1), rapid.IntRange(1, 14), rapid.IntRange(1, period.MaxEvery)).Draw(t, "every"),
		From:     drawDate(t, "from", rapid.SampledFrom([]int{2040, 2040, 2040, 9999}).Draw(t, "last")),
		Zone:     z,
	}
	require.NoError(t, s.Validate())
	return s
}

// Periods tile time: each begins where the one before ends. Names are unique and increase; name, period and instant lead
// to each other.
func TestPeriodsTileTime(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := drawSchedule(t)
		p, ok := s.First()
		if !ok {
			return
		}
		_, before := s.At(p.Start.Add(-1))
		require.False(t, before, "before the first there is none")
		for range 40 {
			require.True(t, p.Start.Before(p.End))
			for _, at := range []time.Time{p.Start, p.End.Add(-1), p.Start.Add(p.End.Sub(p.Start) / 2)} {
				got, ok := s.At(at)
				require.True(t, ok)
				require.Equal(t, p, got)
			}
			named, ok := s.Named(p.Name)
			require.True(t, ok)
			require.Equal(t, p, named)
			require.LessOrEqual(t, len(p.Name), period.MaxName)

			next, ok := s.Next(p)
			after, too := s.After(p.Start)
			require.Equal(t, ok, too)
			require.Equal(t, next, after)
			if !ok {
				return
			}
			require.Equal(t, p.End, next.Start)
			require.Less(t, p.Name, next.Name)
			p = next
		}
	})
}

// The day never drifts: it is that of the first period, or the last of a month that is too short for it.
func TestTheAnchorNeverDrifts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := drawSchedule(t)
		p, ok := s.At(s.From.UTC().Add(time.Duration(rapid.Int64Range(0, 200*365*24).Draw(t, "hours")) * time.Hour))
		if !ok {
			return
		}
		switch s.Interval {
		case period.Day, period.Week:
			days := int(p.On.UTC().Sub(s.From.UTC()).Hours()) / 24
			length := s.Every
			if s.Interval == period.Week {
				length *= 7
			}
			require.Zero(t, days%length)
		default:
			months := 1
			switch s.Interval {
			case period.Quarter:
				months = 3
			case period.Year:
				months = 12
			}
			require.Zero(t, ((p.On.Year-s.From.Year)*12+int(p.On.Month)-int(s.From.Month))%(months*s.Every))
			last := time.Date(p.On.Year, p.On.Month+1, 0, 0, 0, 0, 0, time.UTC).Day()
			require.Equal(t, min(s.From.Day, last), p.On.Day)
		}
	})
}

// An instant belongs to the one period that holds it.
func TestEveryInstantBelongs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := drawSchedule(t)
		at := time.Unix(rapid.Int64Range(0, 253402300799).Draw(t, "at"), 0)
		p, ok := s.At(at)
		first, any := s.First()
		if !any || at.Before(first.Start) {
			require.False(t, ok)
			return
		}
		if !ok { // only at the end of all years, where the zone is ahead of UTC
			require.Equal(t, 10000, at.In(s.Zone).Year())
			return
		}
		require.False(t, at.Before(p.Start))
		require.True(t, at.Before(p.End))
	})
}

// A day begins with the first instant at which the clocks show it or a later one: every half minute is looked at.
func TestADayBeginsWhereTheClocksSay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		z, err := time.LoadLocation(rapid.SampledFrom(zones).Draw(t, "zone"))
		require.NoError(t, err)
		d := drawDate(t, "date", 2100)
		if rapid.Bool().Draw(t, "at a change") { // a day on which an offset changes, or the one after
			at, end := time.Time{}, d.UTC().In(z)
			for range rapid.IntRange(1, 3).Draw(t, "changes") {
				if _, end = end.ZoneBounds(); end.IsZero() {
					break
				}
				at = end
			}
			if !at.IsZero() {
				d = period.DateOf(at.AddDate(0, 0, rapid.IntRange(0, 1).Draw(t, "after")))
			}
		}
		want := d.UTC().Add(-27 * time.Hour)
		for period.DateOf(want.In(z)).Before(d) {
			want = want.Add(30 * time.Second)
		}
		require.Equal(t, want, d.Start(z), "%s in %s", d, z)
	})
}

// What is no name is refused, never taken for another one's.
func TestNoOtherTextIsAName(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := drawSchedule(t)
		text := rapid.OneOf(rapid.StringMatching(`[0-9]{4}(-[QW]?[0-9]{1,2}){0,2}`), rapid.String()).Draw(t, "text")
		if p, ok := s.Named(text); ok {
			require.Equal(t, text, p.Name)
			at, ok := s.At(p.Start)
			require.True(t, ok)
			require.Equal(t, p, at)
		}
	})
}
