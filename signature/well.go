package signature

import "strings"

// What CheckSecret asks beyond what verification needs, where it is certain that a
// secret cannot be right. Each function returns what is wrong, "" for nothing, and
// never shows the secret.

// wellText is for secrets that may be any text.
func wellText(secret string) string {
	switch {
	case strings.TrimSpace(secret) != secret:
		return "it begins or ends with a space or a line break"
	case len(secret) > 1 && (secret[0] == '"' || secret[0] == '\'') && secret[len(secret)-1] == secret[0]:
		return "it stands in quotes; write it without them"
	default:
		return ""
	}
}

// wellNot is wellText for gateways whose other credentials are known by a prefix:
// what is wanted is what.
func wellNot(what string, prefixes ...string) func(string) string {
	return func(secret string) string {
		for _, p := range prefixes {
			if rest, found := strings.CutPrefix(secret, p); found && rest != "" {
				return "what begins with " + p + " is another credential; wanted is " + what
			}
		}
		return wellText(secret)
	}
}

// wellMollie knows the API keys of Mollie, "live_" or "test_" and 30 characters.
func wellMollie(secret string) string {
	if len(secret) == 35 && (strings.HasPrefix(secret, "live_") || strings.HasPrefix(secret, "test_")) {
		return "that is an API key; wanted is the signing secret of the webhook"
	}
	return wellText(secret)
}
