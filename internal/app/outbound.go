package app

import "github.com/paidonce/paidonce/outbound"

// client returns what calls gateways, the same for all parts of the process: the
// paces that it keeps are the process's. What run closes is closed with it.
func (p *program) client() (*outbound.Client, error) {
	if p.calls != nil {
		return p.calls, nil
	}
	c, err := outbound.NewClient(outbound.Options{
		Now: p.edges.Now, DialContext: p.edges.DialContext, RootCAs: p.edges.RootCAs, Registerer: p.registry,
	})
	if err != nil {
		return nil, err
	}
	p.calls = c
	return c, nil
}

// verifier returns what verifies deliveries whose keys are found on the network.
func (p *program) verifier() (*outbound.Verifier, error) {
	c, err := p.client()
	if err != nil {
		return nil, err
	}
	return outbound.NewVerifier(c, outbound.VerifierOptions{}), nil
}
