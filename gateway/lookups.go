package gateway

import "strings"

// maxPage is how many entries one page of a list may have: more than any gateway gives.
const maxPage = 1000

// wholeNumber is a decimal text without its decimals, if these are zeros; else "".
func wholeNumber(text string) string {
	whole, decimals, _ := strings.Cut(text, ".")
	if strings.Trim(decimals, "0") != "" {
		return ""
	}
	return whole
}
