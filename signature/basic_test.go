package signature_test

import (
	"encoding/base64"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/signature"
)

func TestCheckBasic(t *testing.T) {
	t.Parallel()
	const userpass = "adyen-user:pa:ss:1"
	basic := func(s string) http.Header {
		return headers("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(s)))
	}
	for _, tt := range []struct {
		name     string
		header   http.Header
		userpass string
		want     signature.Reason
	}{
		{"Right", basic("u:p"), "u:p", ""},
		{"ColonInThePassword", headers("Authorization", "Basic YWR5ZW4tdXNlcjpwYTpzczox"), userpass, ""}, // case 071
		{"EmptyPassword", basic("u:"), "u:", ""},
		{"KindInLowerCase", headers("Authorization", "basic dTpw"), "u:p", ""},
		{"NameInLowerCase", http.Header{"authorization": {"Basic dTpw"}}, "u:p", ""},
		{"NotASCII", basic("u:pä€"), "u:pä€", ""},

		{"NoHeader", nil, userpass, signature.Missing},
		{"EmptyHeader", headers("Authorization", ""), userpass, signature.Missing},
		{"Bearer", headers("Authorization", "Bearer YWR5ZW4tdXNlcjpwYTpzczox"), userpass, signature.Missing},
		{"Twice", headers("Authorization", "Basic dTpw", "Authorization", "Basic dTpw"), "u:p", signature.Ambiguous},
		{"NotBase64", headers("Authorization", "Basic "+userpass), userpass, signature.Malformed},
		{"Unpadded", headers("Authorization", "Basic dTpwcA"), "u:pp", signature.Malformed},
		{"Nothing", headers("Authorization", "Basic"), userpass, signature.Mismatch},
		{"AnotherPassword", basic("adyen-user:pa:ss:2"), userpass, signature.Mismatch},
		{"FirstPartOfThePassword", basic("adyen-user:pa"), userpass, signature.Mismatch},
		{"AnotherUser", basic("adyen:pa:ss:1"), userpass, signature.Mismatch},
		{"Longer", basic(userpass + "1"), userpass, signature.Mismatch},
		{"OtherCase", basic("Adyen-user:pa:ss:1"), userpass, signature.Mismatch},

		{"NothingConfigured", basic(""), "", signature.NoSecret},
		{"NoColonConfigured", basic("user"), "user", signature.BadSecret},
		{"NoUserConfigured", basic(":p"), ":p", signature.BadSecret},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := signature.CheckBasic(tt.header, tt.userpass)
			require.Equal(t, tt.want, signature.ReasonOf(err), "%v", err)
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			requireDiscreet(t, err, attempt{header: tt.header})
			require.NotContains(t, err.Error(), "pa:ss")
		})
	}
}

// TestCheckAuthorization: a header that the sender was told to send is compared
// whole, and tells nothing of itself.
func TestCheckAuthorization(t *testing.T) {
	t.Parallel()
	const want = "Bearer made-up-7f3a"
	for _, tt := range []struct {
		name   string
		sent   []string
		want   string
		reason signature.Reason
	}{
		{"Right", []string{want}, want, ""},
		{"Missing", nil, want, signature.Missing},
		{"Shorter", []string{"Bearer made-up-7f3"}, want, signature.Mismatch},
		{"Longer", []string{want + "0"}, want, signature.Mismatch},
		{"OtherCase", []string{"bearer made-up-7f3a"}, want, signature.Mismatch},
		{"Twice", []string{want, want}, want, signature.Ambiguous},
		{"NotConfigured", []string{""}, "", signature.NoSecret},
		{"NoHeader", []string{want}, want + "\n", signature.BadSecret},
		{"Spaces", []string{want}, " " + want, signature.BadSecret},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := http.Header{}
			for _, v := range tt.sent {
				h.Add("authorization", v)
			}
			err := signature.CheckAuthorization(h, tt.want)
			require.Equal(t, tt.reason, signature.ReasonOf(err))
			if err != nil {
				require.NotContains(t, err.Error(), "made-up")
				require.Contains(t, err.Error(), "authorization")
			}
		})
	}
}
