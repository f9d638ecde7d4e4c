package outbound_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/outbound"
)

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		code   int
		header string
		want   time.Duration // that the source waits; 0: not at all
	}{
		{429, "120", 2 * time.Minute},
		{503, "120", 2 * time.Minute},
		{429, noon.Add(time.Minute).Format(http.TimeFormat), time.Minute},
		{429, "", 10 * time.Second},
		{429, "soon", 10 * time.Second},
		{429, "-1", 10 * time.Second},
		{429, "99999999999", time.Hour},
		{503, "", 0},
	} {
		h, clock := newHost(t, status(row.code, "Retry-After", row.header)), &hand{}
		c := h.client(t, clock, nil)
		_, err := c.Do(t.Context(), asked, shop, payment)
		require.Equal(t, row.want, fails(t, err, outbound.Retry).after, row)
		h.now(text("{}"))
		if row.want > 0 {
			clock.move(row.want - 1)
			_, err = c.Do(t.Context(), asked, shop, payment)
			require.EqualValues(t, 1, fails(t, err, outbound.Retry).after, row)
			require.EqualValues(t, 1, h.calls.Load(), "nothing is sent before")
			other := shop
			other.ID = "other"
			_, err = c.Do(t.Context(), asked, other, payment)
			require.NoError(t, err, "another source's calls go on")
			clock.move(1)
		}
		_, err = c.Do(t.Context(), asked, shop, payment)
		require.NoError(t, err, row)
	}
}

func TestBucket(t *testing.T) {
	t.Parallel()
	h, clock := newHost(t, text("{}")), &hand{}
	c := h.client(t, clock, func(o *outbound.Options) { o.Burst, o.Every = 3, time.Second })
	do := func() error { _, err := c.Do(t.Context(), asked, shop, payment); return err }
	for range 3 {
		require.NoError(t, do())
	}
	// Those who are turned away come back one after another.
	for i := range 5 {
		require.Equal(t, time.Duration(i+1)*time.Second, fails(t, do(), outbound.Retry).after)
	}
	for range 100 {
		require.LessOrEqual(t, fails(t, do(), outbound.Retry).after, time.Minute)
	}
	require.EqualValues(t, 3, h.calls.Load())
	clock.move(time.Second)
	require.NoError(t, do())
	fails(t, do(), outbound.Retry)
	clock.move(time.Hour)
	for range 3 {
		require.NoError(t, do())
	}
	require.Equal(t, time.Second, fails(t, do(), outbound.Retry).after, "the line is forgotten")
}

func TestConcurrent(t *testing.T) {
	t.Parallel()
	arrived, free := make(chan struct{}), make(chan struct{})
	h := newHost(t, func(http.ResponseWriter, *http.Request) { arrived <- struct{}{}; <-free })
	c := h.client(t, &hand{}, func(o *outbound.Options) { o.Concurrent = 2 })
	done := make(chan error)
	for range 2 {
		go func() { _, err := c.Do(t.Context(), asked, shop, payment); done <- err }()
		<-arrived
	}
	_, err := c.Do(t.Context(), asked, shop, payment)
	require.Positive(t, fails(t, err, outbound.Retry).after)
	close(free)
	require.NoError(t, <-done)
	require.NoError(t, <-done)
	h.now(text("{}"))
	_, err = c.Do(t.Context(), asked, shop, payment)
	require.NoError(t, err)
}

func TestCircuit(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"5xx":  status(500),
		"hang": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	} {
		h := newHost(t, answer)
		c := h.client(t, &hand{}, func(o *outbound.Options) {
			o.CircuitAfter, o.CircuitOpen, o.Deadline = 3, 30*time.Second, time.Second
			if name == "hang" {
				o.Deadline = 50 * time.Millisecond
			}
		})
		for range 3 {
			_, err := c.Do(t.Context(), asked, shop, payment)
			require.Zero(t, fails(t, err, outbound.Retry).after)
		}
		before := h.calls.Load()
		_, err := c.Do(t.Context(), asked, shop, payment)
		require.Equal(t, 30*time.Second, fails(t, err, outbound.Retry).after, name)
		require.Equal(t, before, h.calls.Load(), "nothing is sent")
	}
}

func TestCircuitProbes(t *testing.T) {
	t.Parallel()
	h, clock := newHost(t, status(500)), &hand{}
	c := h.client(t, clock, func(o *outbound.Options) { o.CircuitAfter, o.CircuitOpen = 1, 30*time.Second })
	do := func() error { _, err := c.Do(t.Context(), asked, shop, payment); return err }
	fails(t, do(), outbound.Retry)
	clock.move(30 * time.Second)

	arrived, free := make(chan struct{}), make(chan struct{})
	h.now(func(http.ResponseWriter, *http.Request) { arrived <- struct{}{}; <-free })
	probe := make(chan error)
	go func() { probe <- do() }()
	<-arrived
	require.Equal(t, time.Second, fails(t, do(), outbound.Retry).after, "one at a time")
	close(free)
	require.NoError(t, <-probe)
	h.now(text("{}"))
	require.NoError(t, do())
}

func TestCircuitOfAnAnswer(t *testing.T) {
	t.Parallel()
	h := newHost(t, nil)
	c := h.client(t, &hand{}, func(o *outbound.Options) { o.CircuitAfter = 2 })
	for i := range 6 { // 4xx in between: the host is there
		h.now(status([]int{500, 404}[i%2]))
		_, err := c.Do(t.Context(), asked, shop, payment)
		require.NotZero(t, fails(t, err, []outbound.Kind{outbound.Retry, outbound.Gone}[i%2]).status)
	}
	// Callers who hang up say nothing about the host.
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		h.now(func(_ http.ResponseWriter, r *http.Request) { cancel(); <-r.Context().Done() })
		_, err := c.Do(ctx, asked, shop, payment)
		require.ErrorIs(t, err, context.Canceled)
	}
	h.now(text("{}"))
	_, err := c.Do(t.Context(), asked, shop, payment)
	require.NoError(t, err)
}
