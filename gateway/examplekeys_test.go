package gateway_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/paidonce/paidonce/gateway"
)

// TestExampleKeys: a seed always gives the same keys, which belong together, and
// another seed others.
func TestExampleKeys(t *testing.T) {
	t.Parallel()
	public, private := gateway.KeysOfRSA("g", "main")
	again, _ := gateway.KeysOfRSA("g", "main")
	require.Equal(t, public, again)
	other, _ := gateway.KeysOfRSA("g", "other")
	require.NotEqual(t, public, other)
	block, _ := pem.Decode([]byte(private))
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	require.NoError(t, err)
	require.NoError(t, key.(*rsa.PrivateKey).Validate())               //nolint:forcetypeassert // a key of RSA
	require.Equal(t, 2048, key.(*rsa.PrivateKey).PublicKey.N.BitLen()) //nolint:forcetypeassert // see above
	block, _ = pem.Decode([]byte(public))
	open, err := x509.ParsePKIXPublicKey(block.Bytes)
	require.NoError(t, err)
	require.True(t, key.(*rsa.PrivateKey).PublicKey.Equal(open)) //nolint:forcetypeassert // see above

	jwk, secret := gateway.KeysOfJWK("g", "main", "kid-1")
	require.Empty(t, gjson.Get(jwk, "d").String())
	number := func(json, member string) []byte {
		b, err := base64.RawURLEncoding.DecodeString(gjson.Get(json, member).String())
		require.NoError(t, err)
		require.Len(t, b, 32)
		return b
	}
	pair, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), number(secret, "d"))
	require.NoError(t, err)
	point, err := pair.PublicKey.Bytes()
	require.NoError(t, err)
	require.Equal(t, point[1:], append(number(jwk, "x"), number(jwk, "y")...), "the public half is another's")
	sum := make([]byte, 32)
	sig, err := ecdsa.SignASN1(rand.Reader, pair, sum)
	require.NoError(t, err)
	require.True(t, ecdsa.VerifyASN1(&pair.PublicKey, sum, sig))
}
