package period_test

import (
	"testing"
	"time"
	_ "time/tzdata" // the zones of these tests, whatever the machine has

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/period"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	require.NoError(t, err)
	return z
}

func date(t testing.TB, text string) period.Date {
	t.Helper()
	d, err := period.ParseDate(text)
	require.NoError(t, err)
	return d
}

func instant(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	require.NoError(t, err)
	return at
}

// names are the first n periods' names and, with them, their first instants as the zone shows them.
func names(t testing.TB, s period.Schedule, n int) (called, starts []string) {
	t.Helper()
	p, ok := s.First()
	for ; ok && len(called) < n; p, ok = s.Next(p) {
		called, starts = append(called, p.Name), append(starts, p.Start.In(s.Zone).Format(time.RFC3339))
	}
	return called, starts
}

func TestNames(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		interval period.Interval
		every    int
		from     string
		want     []string
	}{
		{"Days", period.Day, 1, "2026-12-30", []string{"2026-12-30", "2026-12-31", "2027-01-01"}},
		{"TenDays", period.Day, 10, "2026-10-05", []string{"2026-10-05", "2026-10-15", "2026-10-25", "2026-11-04"}},
		{"Weeks", period.Week, 1, "2026-10-05", []string{"2026-W41", "2026-W42"}},
		{"WeekOfTheYearThatHasMostOfIt", period.Week, 1, "2026-12-31", []string{"2026-W53", "2027-W01"}},
		{"WeekFromSunday", period.Week, 2, "2027-01-03", []string{"2026-W53", "2027-W02"}},
		{"Months", period.Month, 1, "2026-11-15", []string{"2026-11", "2026-12", "2027-01"}},
		{"SixMonths", period.Month, 6, "2026-11-15", []string{"2026-11", "2027-05", "2027-11"}},
		{"Quarters", period.Quarter, 1, "2026-11-15", []string{"2026-Q4", "2027-Q1", "2027-Q2"}},
		{"HalfYears", period.Quarter, 2, "2026-03-31", []string{"2026-Q1", "2026-Q3", "2027-Q1"}},
		{"Years", period.Year, 1, "2026-07-01", []string{"2026", "2027"}},
		{"Decades", period.Year, 10, "2026-07-01", []string{"2026", "2036"}},
		{"TheFirstDay", period.Day, 1, "1970-01-01", []string{"1970-01-01", "1970-01-02"}},
		{"TheLastDays", period.Day, 1, "9999-12-30", []string{"9999-12-30", "9999-12-31"}},
		{"TheLastWeek", period.Week, 1, "9999-12-25", []string{"9999-W51"}},
		{"TheLastWeekInFull", period.Week, 1, "9999-12-20", []string{"9999-W51", "9999-W52"}},
		{"TheLastMonths", period.Month, 1, "9999-11-30", []string{"9999-11", "9999-12"}},
		{"TheLastYear", period.Year, 1, "9999-01-01", []string{"9999"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := period.Schedule{Interval: tt.interval, Every: tt.every, From: date(t, tt.from), Zone: time.UTC}
			require.NoError(t, s.Validate())
			n := len(tt.want)
			if tt.from[:4] == "9999" {
				n++ // and no more
			}
			called, _ := names(t, s, n)
			require.Equal(t, tt.want, called)
		})
	}
}

// The day of the month is that of the first period, or the month's last: never that of the period before.
func TestMonthEnds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		from     string
		interval period.Interval
		want     []string
	}{
		{"2027-12-31", period.Month, []string{"2027-12-31", "2028-01-31", "2028-02-29", "2028-03-31", "2028-04-30", "2028-05-31"}},
		{"2026-12-31", period.Month, []string{"2026-12-31", "2027-01-31", "2027-02-28", "2027-03-31"}},
		{"2026-01-30", period.Month, []string{"2026-01-30", "2026-02-28", "2026-03-30"}},
		{"2025-11-30", period.Quarter, []string{"2025-11-30", "2026-02-28", "2026-05-30", "2026-08-30"}},
		{"2024-02-29", period.Year, []string{"2024-02-29", "2025-02-28", "2026-02-28", "2027-02-28", "2028-02-29"}},
		{"2096-02-29", period.Year, []string{"2096-02-29", "2097-02-28", "2098-02-28", "2099-02-28", "2100-02-28", "2101-02-28"}},
	} {
		t.Run(tt.from+" "+string(tt.interval), func(t *testing.T) {
			t.Parallel()
			s := period.Schedule{Interval: tt.interval, Every: 1, From: date(t, tt.from), Zone: time.UTC}
			var on []string
			for p, ok := s.First(); ok && len(on) < len(tt.want); p, ok = s.Next(p) {
				on = append(on, p.On.String())
			}
			require.Equal(t, tt.want, on)
		})
	}
}

func TestClocks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, zone, from string
		want             []string // first instants, as the zone shows them
	}{
		{
			"MidnightIsSkipped", "America/Sao_Paulo", "2018-11-03",
			[]string{"2018-11-03T00:00:00-03:00", "2018-11-04T01:00:00-02:00", "2018-11-05T00:00:00-02:00"},
		},
		{
			"MidnightIsSkippedByLaw", "Africa/Cairo", "2023-04-27",
			[]string{"2023-04-27T00:00:00+02:00", "2023-04-28T01:00:00+03:00", "2023-04-29T00:00:00+03:00"},
		},
		{
			"MidnightComesTwice", "America/Havana", "2026-10-31",
			[]string{"2026-10-31T00:00:00-04:00", "2026-11-01T00:00:00-04:00", "2026-11-02T00:00:00-05:00"},
		},
		{
			"TheHourBeforeMidnightComesTwice", "America/Sao_Paulo", "2018-02-17",
			[]string{"2018-02-17T00:00:00-02:00", "2018-02-18T00:00:00-03:00", "2018-02-19T00:00:00-03:00"},
		},
		{
			"OneMinuteAfterMidnightTheDayBeforeComesBack", "America/St_Johns", "2006-10-28",
			[]string{"2006-10-28T00:00:00-02:30", "2006-10-29T00:00:00-02:30", "2006-10-30T00:00:00-03:30"},
		},
		{
			"HalfAnHour", "Australia/Lord_Howe", "2026-04-04",
			[]string{"2026-04-04T00:00:00+11:00", "2026-04-05T00:00:00+11:00", "2026-04-06T00:00:00+10:30"},
		},
		{
			"ADayIsSkipped", "Pacific/Apia", "2011-12-29",
			[]string{"2011-12-29T00:00:00-10:00", "2011-12-31T00:00:00+14:00", "2012-01-01T00:00:00+14:00"},
		},
		{
			"FromADayThatIsSkipped", "Pacific/Apia", "2011-12-30",
			[]string{"2011-12-31T00:00:00+14:00", "2012-01-01T00:00:00+14:00"},
		},
		{
			"ADayIsSkippedOnTheOtherSide", "Pacific/Kwajalein", "1993-08-20",
			[]string{"1993-08-20T00:00:00-12:00", "1993-08-22T00:00:00+12:00"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := period.Schedule{Interval: period.Day, Every: 1, From: date(t, tt.from), Zone: zone(t, tt.zone)}
			_, starts := names(t, s, len(tt.want))
			require.Equal(t, tt.want, starts)
		})
	}
}

// A day that did not happen is no period: nobody can be owed anything for it.
func TestASkippedDayIsNoPeriod(t *testing.T) {
	t.Parallel()
	apia := zone(t, "Pacific/Apia")
	daily := period.Schedule{Interval: period.Day, Every: 1, From: date(t, "2011-12-28"), Zone: apia}
	called, _ := names(t, daily, 4)
	require.Equal(t, []string{"2011-12-28", "2011-12-29", "2011-12-31", "2012-01-01"}, called)
	_, ok := daily.Named("2011-12-30")
	require.False(t, ok)

	// A longer period that should have begun on it begins when it should have ended, and keeps its name and its anchor.
	monthly := period.Schedule{Interval: period.Month, Every: 1, From: date(t, "2011-11-30"), Zone: apia}
	called, starts := names(t, monthly, 3)
	require.Equal(t, []string{"2011-11", "2011-12", "2012-01"}, called)
	require.Equal(t, []string{"2011-11-30T00:00:00-10:00", "2011-12-31T00:00:00+14:00", "2012-01-30T00:00:00+14:00"}, starts)
}

func TestAt(t *testing.T) {
	t.Parallel()
	s := period.Schedule{Interval: period.Month, Every: 1, From: date(t, "2026-10-05"), Zone: zone(t, "America/New_York")}
	for _, tt := range []struct{ at, want string }{
		{"2026-10-05T03:59:59Z", ""},
		{"2026-10-05T04:00:00Z", "2026-10"},
		{"2026-11-05T04:59:59Z", "2026-10"}, // the clocks went back meanwhile
		{"2026-11-05T05:00:00Z", "2026-11"},
		{"1970-01-01T00:00:00Z", ""},
		{"9999-12-31T00:00:00Z", "9999-12"},
	} {
		p, ok := s.At(instant(t, tt.at))
		require.Equal(t, tt.want != "", ok, tt.at)
		require.Equal(t, tt.want, p.Name, tt.at)
	}
	// A quarter past eleven on the 28th, again: the 29th had begun for a minute by then.
	daily := period.Schedule{Interval: period.Day, Every: 1, From: date(t, "2006-10-01"), Zone: zone(t, "America/St_Johns")}
	again := instant(t, "2006-10-29T02:45:00Z")
	require.Equal(t, "2006-10-28T23:15:00-03:30", again.In(daily.Zone).Format(time.RFC3339))
	p, ok := daily.At(again)
	require.True(t, ok)
	require.Equal(t, "2006-10-29", p.Name)

	next, ok := s.After(instant(t, "2026-10-05T03:59:59Z"))
	require.True(t, ok)
	require.Equal(t, "2026-10", next.Name)
	next, ok = s.After(next.Start)
	require.True(t, ok)
	require.Equal(t, "2026-11", next.Name, "after its own start comes another")
	_, ok = s.After(instant(t, "9999-12-20T00:00:00Z"))
	require.False(t, ok)
	_, ok = s.At(time.Date(10000, 1, 6, 0, 0, 0, 0, time.UTC))
	require.False(t, ok)
}

func TestNamedRefusesWhatIsNoName(t *testing.T) {
	t.Parallel()
	from := date(t, "2026-01-31")
	for interval, wrong := range map[period.Interval][]string{
		period.Day:     {"", "2026", "2026-01-29", "2026-01-30", "2026-02-30", "2026-1-31", "2026-01-31 ", "26-01-31", "2026-02-01"},
		period.Week:    {"", "2026-W01", "2026-W03", "2026-W54", "2027-W53", "2026-W5", "2026-W05x", "2026-05", "2026W05", "2026-W-5", "2026-W06"},
		period.Month:   {"", "2026", "2025-11", "2025-12", "2026-13", "2026-00", "2026-1", "2026-01-31", "2026x01", "+226-01", "2026-+1", "2026-02"},
		period.Quarter: {"", "2026-Q0", "2026-Q5", "2025-Q3", "2025-Q4", "2026-4", "2026-Q01", "2026-q1", "2026-Q2"},
		period.Year:    {"", "2024", "2025", "1969", "2026-", "2026x", "202", "0000", "2027", "99999"},
	} {
		s := period.Schedule{Interval: interval, Every: 2, From: from, Zone: time.UTC}
		first, ok := s.First()
		require.True(t, ok)
		got, ok := s.Named(first.Name)
		require.True(t, ok)
		require.Equal(t, first, got)
		for _, name := range wrong {
			_, ok := s.Named(name)
			require.False(t, ok, "%s %q", interval, name)
		}
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	good := period.Schedule{Interval: period.Month, Every: 1, From: date(t, "2026-01-31"), Zone: time.UTC}
	require.NoError(t, good.Validate())
	for want, spoil := range map[string]func(*period.Schedule){
		"unknown interval": func(s *period.Schedule) { s.Interval = "fortnight" },
		"every 0":          func(s *period.Schedule) { s.Every = 0 },
		"every 1001":       func(s *period.Schedule) { s.Every = period.MaxEvery + 1 },
		"1969-12-31":       func(s *period.Schedule) { s.From = period.Date{Year: 1969, Month: 12, Day: 31} },
		"2026-02-30":       func(s *period.Schedule) { s.From = period.Date{Year: 2026, Month: 2, Day: 30} },
		"no time zone":     func(s *period.Schedule) { s.Zone = nil },
	} {
		s := good
		spoil(&s)
		require.ErrorContains(t, s.Validate(), want)
		_, ok := s.First()
		require.False(t, ok, want)
		_, ok = s.At(instant(t, "2026-05-01T00:00:00Z"))
		require.False(t, ok, want)
		_, ok = s.Named("2026-01")
		require.False(t, ok, want)
	}
}

func TestLoadZone(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+5"} {
		z, err := period.LoadZone(name)
		require.NoError(t, err)
		require.Equal(t, name, z.String())
	}
	for _, name := range []string{"", "Local", "Mars/Base", "right/UTC", "posix/UTC", "../../etc/passwd", "/usr/share/zoneinfo/UTC", "europe/berlin ", "CEST+2"} {
		_, err := period.LoadZone(name)
		require.ErrorContains(t, err, "is no IANA name", name)
	}
}

func TestParseDate(t *testing.T) {
	t.Parallel()
	for _, wrong := range []string{"", "1969-12-31", "10000-01-01", "2026-02-29", "2026-2-1", "2026-02-01T00:00:00Z", "2026/02/01"} {
		_, err := period.ParseDate(wrong)
		require.ErrorContains(t, err, "is no day", wrong)
	}
	var d period.Date
	require.NoError(t, d.UnmarshalText([]byte("2028-02-29")))
	text, err := d.MarshalText()
	require.NoError(t, err)
	require.Equal(t, "2028-02-29", string(text))
	require.False(t, d.IsZero())
	require.True(t, period.Date{}.IsZero())
}
