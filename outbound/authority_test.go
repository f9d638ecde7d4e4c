package outbound_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// authority signs certificates.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	a := &authority{key: key}
	a.cert = a.sign(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "a root"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: noon.AddDate(-10, 0, 0), NotAfter: noon.AddDate(10, 0, 0),
	}, key.Public())
	return a
}

// sign makes a certificate; the first one of an authority is its own.
func (a *authority) sign(t *testing.T, template *x509.Certificate, public crypto.PublicKey) *x509.Certificate {
	t.Helper()
	template.SerialNumber = big.NewInt(1)
	parent := a.cert
	if parent == nil {
		parent = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, a.key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return cert
}

// serverCertificate is what the host of the tests shows.
func (a *authority) serverCertificate(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	cert := a.sign(t, &x509.Certificate{
		DNSNames:  []string{"example.com", "api.paypal.com", "api.sandbox.paypal.com", "api-m.paypal.com"},
		NotBefore: noon.AddDate(-10, 0, 0), NotAfter: noon.AddDate(10, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, key.Public())
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
}

// messageCertificate is one like PayPal's, for the key of the tests.
func (a *authority) messageCertificate(t *testing.T, change func(*x509.Certificate)) []byte {
	t.Helper()
	return pemOf(a.sign(t, messageTemplate(change), senderKey().Public()))
}

func messageTemplate(change func(*x509.Certificate)) *x509.Certificate {
	template := &x509.Certificate{
		Subject:  pkix.Name{CommonName: "messageverificationcerts.paypal.com"},
		DNSNames: []string{"messageverificationcerts.paypal.com"},
		// A part of a second is cut off.
		NotBefore: noon.AddDate(-1, 0, 0), NotAfter: noon.AddDate(1, 0, 0),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
	}
	if change != nil {
		change(template)
	}
	return template
}

// senderKey signs the deliveries of the tests: making one takes a while.
var senderKey = sync.OnceValue(func() *rsa.PrivateKey { return newRSA(2048) })

func newRSA(bits int) *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		panic(err)
	}
	return key
}

func privatePEM(key *rsa.PrivateKey) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
}

func pemOf(certs ...*x509.Certificate) []byte {
	var all []byte
	for _, c := range certs {
		all = append(all, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	return all
}

const day = 24 * time.Hour
