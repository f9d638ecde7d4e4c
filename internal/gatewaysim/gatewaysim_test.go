package gatewaysim_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/internal/gatewaysim"
	"github.com/paidonce/paidonce/outbound"
)

var now = time.Date(2026, 9, 21, 12, 0, 0, 0, time.UTC)

func start(t *testing.T) (*gatewaysim.Sim, *outbound.Client) {
	t.Helper()
	sim, err := gatewaysim.New()
	require.NoError(t, err)
	t.Cleanup(sim.Close)
	client, err := outbound.NewClient(outbound.Options{
		Now: func() time.Time { return now }, DialContext: sim.DialContext, RootCAs: sim.RootCAs(), CircuitAfter: 1000, Deadline: 5 * time.Second,
	})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return sim, client
}

func enter(t *testing.T, sim *gatewaysim.Sim, g *gateway.Gateway) gateway.Source {
	t.Helper()
	s := g.Example("simulated")
	s.ID = "a." + g.Name
	s, err := sim.Source(s)
	require.NoError(t, err)
	require.NoError(t, g.Check(s))
	return s
}

// TestEveryGatewayThatIsAsked asks about a sample of every type.
func TestEveryGatewayThatIsAsked(t *testing.T) {
	t.Parallel()
	sim, client := start(t)
	asked := 0
	for _, g := range gateway.All() {
		if g.Fetch == nil || !g.Fetch.Always {
			continue
		}
		asked++
		s := enter(t, sim, g)
		client, err := outbound.NewClient(outbound.Options{Burst: 1000}) // the system's dialer: api_url is enough
		require.NoError(t, err)
		t.Cleanup(client.Close)
		for i, typ := range g.Types(s) {
			o, body, err := g.Fetch.Sample(gateway.SampleRequest{Source: s, Type: typ.Name, Reference: "A-1"})
			require.NoError(t, err)
			require.NoError(t, sim.Set(s, o, body))
			call, err := g.Fetch.Call(s, o)
			require.NoError(t, err)
			got, err := client.Do(t.Context(), g, s, call)
			require.NoError(t, err, "%s %s", g.Name, typ.Name)
			require.Equal(t, string(body), string(got))
			events, err := g.Fetched(s, o, gateway.Answer{Body: got, Started: now})
			require.NoError(t, err, "%s %s", g.Name, typ.Name)
			require.NotEmpty(t, events)
			require.Equal(t, i+1, sim.Calls(s.ID, gateway.Object{}), "%s %s", g.Name, typ.Name)
		}
	}
	require.Positive(t, asked)

	_, err := client.Do(t.Context(), gateway.MercadoPago, enter(t, sim, gateway.MercadoPago), gateway.Call{Path: "/v1/payments/1"})
	var e *outbound.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, outbound.Gone, e.Kind)
}

// TestEveryGatewayWithAKey verifies what it signs by the key that is here.
func TestEveryGatewayWithAKey(t *testing.T) {
	t.Parallel()
	sim, client := start(t)
	v := outbound.NewVerifier(client, outbound.VerifierOptions{})
	keyed := 0
	for _, g := range gateway.All() {
		if g.Remote == nil || g.Remote.Example == nil {
			continue
		}
		keyed++
		s := enter(t, sim, g)
		d, err := g.Deliver(s, []byte(`{"id":"x"}`), "", now)
		require.NoError(t, err)
		require.NoError(t, v.Verify(t.Context(), g, s, d, now), g.Name)
	}
	require.Positive(t, keyed)
}

func TestCredentialsAreLookedAt(t *testing.T) {
	t.Parallel()
	sim, client := start(t)
	g := gateway.MercadoPago
	s := enter(t, sim, g)
	o, body, err := g.Fetch.Sample(gateway.SampleRequest{Source: s, Type: "payment.approved"})
	require.NoError(t, err)
	require.NoError(t, sim.Set(s, o, body))
	stranger := s
	stranger.AccessToken = "TEST-another"
	call, err := g.Fetch.Call(stranger, o)
	require.NoError(t, err)
	_, err = client.Do(t.Context(), g, s, call)
	var e *outbound.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, outbound.Denied, e.Kind)

	other := s
	other.ID = "never-entered"
	require.Error(t, sim.Set(other, o, body))
	require.Error(t, sim.Set(gateway.Stripe.Example("x"), o, body))
}

func TestNothingElseCanBeReached(t *testing.T) {
	t.Parallel()
	sim, _ := start(t)
	for _, address := range []string{"api.mercadopago.com:443", "10.0.0.1:80", "api.paypal.com:443"} {
		_, err := sim.DialContext(t.Context(), "tcp", address)
		require.ErrorContains(t, err, "no network", address)
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	g := gateway.MercadoPago
	for name, row := range map[string]struct {
		fault gatewaysim.Fault
		kind  outbound.Kind
		code  int
		after time.Duration
	}{
		"default":     {gatewaysim.Fault{}, outbound.Retry, 503, 0},
		"retry after": {gatewaysim.Fault{Status: 429, RetryAfter: 7 * time.Second}, outbound.Retry, 429, 7 * time.Second},
		"redirect":    {gatewaysim.Fault{Location: "https://elsewhere.example/"}, outbound.Refused, 302, 0},
		"oversize":    {gatewaysim.Fault{Answer: gatewaysim.Oversize}, outbound.Refused, 200, 0},
	} {
		sim, client := start(t)
		s := enter(t, sim, g)
		o, body, err := g.Fetch.Sample(gateway.SampleRequest{Source: s, Type: "payment.approved"})
		require.NoError(t, err)
		require.NoError(t, sim.Set(s, o, body))
		call, err := g.Fetch.Call(s, o)
		require.NoError(t, err)
		row.fault.Times = 1
		sim.Fail(s.ID, o, &row.fault)
		_, err = client.Do(t.Context(), g, s, call)
		var e *outbound.Error
		require.ErrorAs(t, err, &e, name)
		require.Equal(t, row.kind, e.Kind, name)
		require.Equal(t, row.code, e.Status, name)
		require.Equal(t, row.after, e.After, name)
		if row.after > 0 {
			continue // the client waits
		}
		_, err = client.Do(t.Context(), g, s, call)
		require.NoError(t, err, name)
		require.Equal(t, 2, sim.Calls(s.ID, o))
	}
}

// TestFaultsThatStay: until they are taken back, of one object or of all.
func TestFaultsThatStay(t *testing.T) {
	t.Parallel()
	g := gateway.MercadoPago
	sim, client := start(t)
	s := enter(t, sim, g)
	do := func(payment string) ([]byte, error) {
		o := gateway.Object{Kind: "payment", ID: payment}
		call, err := g.Fetch.Call(s, o)
		require.NoError(t, err)
		return client.Do(t.Context(), g, s, call)
	}
	for _, payment := range []string{"1", "2"} {
		require.NoError(t, sim.Set(s, gateway.Object{Kind: "payment", ID: payment}, []byte("{}")))
	}
	sim.Fail(s.ID, gateway.Object{Kind: "payment", ID: "1"}, &gatewaysim.Fault{Answer: gatewaysim.Garbage})
	for range 3 {
		body, err := do("1")
		require.NoError(t, err)
		require.Contains(t, string(body), "<html>")
	}
	body, err := do("2")
	require.NoError(t, err)
	require.Equal(t, "{}", string(body))
	sim.Fail(s.ID, gateway.Object{Kind: "payment", ID: "1"}, nil)
	body, err = do("1")
	require.NoError(t, err)
	require.Equal(t, "{}", string(body))
	sim.Fail(s.ID, gateway.Object{}, &gatewaysim.Fault{Status: http.StatusForbidden})
	_, err = do("2")
	require.Error(t, err)
	require.Equal(t, 6, sim.Calls(s.ID, gateway.Object{}))
	require.Zero(t, sim.Calls("nobody", gateway.Object{}))
}

// TestHangEnds when the caller hangs up, or the Sim is closed.
func TestHangEnds(t *testing.T) {
	t.Parallel()
	sim, err := gatewaysim.New()
	require.NoError(t, err)
	client, err := outbound.NewClient(outbound.Options{Deadline: time.Minute})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	g := gateway.MercadoPago
	s := enter(t, sim, g)
	sim.Fail(s.ID, gateway.Object{}, &gatewaysim.Fault{Answer: gatewaysim.Hang})
	done := make(chan error)
	go func() {
		_, err := client.Do(t.Context(), g, s, gateway.Call{Path: "/v1/payments/1"})
		done <- err
	}()
	for sim.Calls(s.ID, gateway.Object{}) == 0 {
		select {
		case err := <-done:
			t.Fatal(err)
		case <-time.After(time.Millisecond):
		}
	}
	sim.Close()
	require.Error(t, <-done)
}

func TestKeyFaults(t *testing.T) {
	t.Parallel()
	sim, client := start(t)
	g := gateway.PayPal
	s := enter(t, sim, g)
	ref, _ := g.Remote.Example(s)
	d, err := g.Deliver(s, []byte(`{"id":"x"}`), "", now)
	require.NoError(t, err)
	sim.FailKey(ref.URL, &gatewaysim.Fault{Status: http.StatusBadGateway, Times: 1})
	err = outbound.NewVerifier(client, outbound.VerifierOptions{}).Verify(t.Context(), g, s, d, now)
	var e *outbound.Error
	require.ErrorAs(t, err, &e)
	require.NoError(t, outbound.NewVerifier(client, outbound.VerifierOptions{}).Verify(t.Context(), g, s, d, now))
}
