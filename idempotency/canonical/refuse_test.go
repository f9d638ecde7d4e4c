package canonical_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/idempotency/canonical"
)

func refused(t require.TestingT, text string) *canonical.SyntaxError {
	d, err := canonical.JSON([]byte(text))
	var syntax *canonical.SyntaxError
	require.ErrorAs(t, err, &syntax, text)
	require.Nil(t, d)
	return syntax
}

type refusal struct {
	text    string
	reason  canonical.Reason
	offset  int
	pointer string
}

func refusals(t *testing.T, all ...refusal) {
	t.Helper()
	for _, r := range all {
		e := refused(t, r.text)
		require.Equal(t, &canonical.SyntaxError{Reason: r.reason, Offset: r.offset, Pointer: r.pointer}, e, "%q", r.text)
		require.Contains(t, e.Error(), fmt.Sprintf("at byte %d", r.offset))
	}
}

func TestT26_DuplicateNamesAreRefused(t *testing.T) {
	t.Parallel()
	const why = canonical.DuplicateName
	refusals(t,
		refusal{`{"a":1,"a":1}`, why, 7, "/a"},
		refusal{`{"a":1,"\u0061":2}`, why, 7, "/a"},
		refusal{`{"\ud83d\ude00":1,"b":2,"😀":3}`, why, 24, "/😀"},
		refusal{`{"":1,"":2}`, why, 6, "/"},
		refusal{`{"b":0,"a":1,"c":2,"a":3,"b":4,"a":5}`, why, 19, "/a"},
		refusal{`{"data":[0,{"items":{"x/~":{},"y":[],"x\/~":null}}]}`, why, 37, "/data/1/items/x~1~0"},
		refusal{`{"a":{"b":1},"a":{"c":2}}`, why, 13, "/a"},
		refusal{`[{"z":1},{"a":1},{"z":1,"z":2}]`, why, 24, "/2/z"},
	)
	// The same name is fine where it is another object's.
	sum(t, `{"a":{"a":{"a":1}},"b":{"a":[{"a":1},{"a":1}]}}`)
	classes(t, class{`{"a":1}`}, class{`{"A":1}`}, class{`{"a ":1}`}, class{`{"á":1}`}, class{`{"a\u0301":1}`})
}

func TestT28_WhatIsNotUnicodeIsRefused(t *testing.T) {
	t.Parallel()
	refusals(t,
		refusal{"\"\xff\"", canonical.InvalidUTF8, 1, ""},
		refusal{"{\"a\":\"b\xc3\"}", canonical.InvalidUTF8, 7, "/a"},
		refusal{"{\"\xc0\xaf\":1}", canonical.InvalidUTF8, 2, ""},                   // overlong
		refusal{"[\"\xed\xa0\x80\"]", canonical.InvalidUTF8, 2, "/0"},               // a surrogate
		refusal{"\"\xf4\x90\x80\x80\"", canonical.InvalidUTF8, 1, ""},               // above U+10FFFF
		refusal{"\"\xe2\x82\"", canonical.InvalidUTF8, 1, ""},                       // cut
		refusal{`"\ud800"`, canonical.LoneSurrogate, 1, ""},                         // high
		refusal{`"\udfff"`, canonical.LoneSurrogate, 1, ""},                         // low
		refusal{`"a\udc00\ud800"`, canonical.LoneSurrogate, 2, ""},                  // the wrong way round
		refusal{`"\ud800\ud800"`, canonical.LoneSurrogate, 1, ""},                   // two high
		refusal{`"\ud800\u0041"`, canonical.LoneSurrogate, 1, ""},                   // high, and a letter
		refusal{`"\ud800\n"`, canonical.LoneSurrogate, 1, ""},                       // high, and another escape
		refusal{`"\ud800x"`, canonical.LoneSurrogate, 1, ""},                        // high, and a character
		refusal{`{"\uDBFF":{}}`, canonical.LoneSurrogate, 2, ""},                    // in a name
		refusal{`{"data":{"n":"\ud83d "}}`, canonical.LoneSurrogate, 14, "/data/n"}, // U+1F600, cut
	)
	sum(t, `"�\ufffd"`) // the character that others put in their place is itself allowed
}

func TestT29_AByteOrderMarkIsRefused(t *testing.T) {
	t.Parallel()
	const bom = "\ufeff"
	refusals(t,
		refusal{bom, canonical.ByteOrderMark, 0, ""},
		refusal{bom + `{}`, canonical.ByteOrderMark, 0, ""},
		refusal{` ` + bom + `{}`, canonical.UnexpectedByte, 1, ""},
		refusal{"\xff\xfe{\x00}\x00", canonical.UnexpectedByte, 0, ""},
		refusal{"\x00{\x00}", canonical.UnexpectedByte, 0, ""},
	)
	sum(t, `"`+bom+`"`) // in a string it is a character
}

func TestT31_NothingBehindNothingMissingNothingTooDeep(t *testing.T) {
	t.Parallel()
	refusals(t,
		refusal{`{"a":1} {"b":2}`, canonical.TrailingData, 8, ""},
		refusal{`{}]`, canonical.TrailingData, 2, ""},
		refusal{`1 2`, canonical.TrailingData, 2, ""},
		refusal{"null\x00", canonical.TrailingData, 4, ""},
		refusal{" \n", canonical.Truncated, 2, ""},
	)
	whole := `{"data": [ {"a\n" : -1.5e+7, "\ud83d\ude00": "x\u00e9\\"} , [ true ,false, null ] ]}`
	sum(t, whole)
	for i := 1; i < len(whole); i++ {
		e := refused(t, whole[:i])
		require.Equal(t, canonical.Truncated, e.Reason, whole[:i])
		require.LessOrEqual(t, e.Offset, i)
	}

	deepest := strings.Repeat(`[`, canonical.MaxDepth) + strings.Repeat(`]`, canonical.MaxDepth)
	sum(t, deepest)
	require.Equal(t, canonical.TooDeep, refused(t, "["+deepest+"]").Reason)
	require.Equal(t, canonical.TooDeep, refused(t, strings.Repeat(`{"a":`, canonical.MaxDepth)+`[]`).Reason)
	require.Equal(t, canonical.TooDeep, refused(t, strings.Repeat(`{"a":[`, canonical.MaxDepth/2)+`{}`).Reason)
}

func TestT31_TenThousandLevelsCostNoStack(t *testing.T) {
	for _, text := range []string{strings.Repeat("[", 10_000), strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000), strings.Repeat(`{"a":`, 10_000)} {
		stack := make(chan uint64)
		go func() { // a goroutine of its own has a small stack, which would have to grow
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := canonical.JSON([]byte(text))
			runtime.ReadMemStats(&after)
			if err == nil {
				close(stack)
				return
			}
			stack <- after.StackInuse - min(before.StackInuse, after.StackInuse)
		}()
		grown, refused := <-stack
		require.True(t, refused)
		require.LessOrEqual(t, grown, uint64(64<<10))
	}
}

func TestWhatIsNotJSONIsRefused(t *testing.T) {
	t.Parallel()
	refusals(t,
		refusal{`{"a":01}`, canonical.MalformedNumber, 5, "/a"},
		refusal{`-01`, canonical.MalformedNumber, 1, ""},
		refusal{`[1.]`, canonical.MalformedNumber, 3, "/0"},
		refusal{`[-]`, canonical.MalformedNumber, 2, "/0"},
		refusal{`[1e]`, canonical.MalformedNumber, 3, "/0"},
		refusal{`[1,2e+]`, canonical.MalformedNumber, 6, "/1"},
		refusal{`[1.e1]`, canonical.MalformedNumber, 3, "/0"},
		refusal{`[--1]`, canonical.MalformedNumber, 2, "/0"},
		refusal{`[1.5.5]`, canonical.UnexpectedByte, 4, ""},
		refusal{`[0x1]`, canonical.UnexpectedByte, 2, ""},
		refusal{`[+1]`, canonical.UnexpectedByte, 1, "/0"},
		refusal{`[.5]`, canonical.UnexpectedByte, 1, "/0"},
		refusal{`NaN`, canonical.UnexpectedByte, 0, ""},
		refusal{`-Infinity`, canonical.MalformedNumber, 1, ""},
		refusal{`[nil]`, canonical.UnexpectedByte, 2, "/0"},
		refusal{`True`, canonical.UnexpectedByte, 0, ""},
		refusal{`truee`, canonical.TrailingData, 4, ""},
		refusal{`[1,]`, canonical.UnexpectedByte, 3, "/1"},
		refusal{`[,1]`, canonical.UnexpectedByte, 1, "/0"},
		refusal{`[1 2]`, canonical.UnexpectedByte, 3, ""},
		refusal{`[1}`, canonical.UnexpectedByte, 2, ""},
		refusal{`{"a":1]`, canonical.UnexpectedByte, 6, ""},
		refusal{`{"a":1,}`, canonical.UnexpectedByte, 7, ""},
		refusal{`{,}`, canonical.UnexpectedByte, 1, ""},
		refusal{`{"a"}`, canonical.UnexpectedByte, 4, "/a"},
		refusal{`{"a" 1}`, canonical.UnexpectedByte, 5, "/a"},
		refusal{`{a:1}`, canonical.UnexpectedByte, 1, ""},
		refusal{`{1:1}`, canonical.UnexpectedByte, 1, ""},
		refusal{`{'a':1}`, canonical.UnexpectedByte, 1, ""},
		refusal{`{"x":{"a":1 "b":2}}`, canonical.UnexpectedByte, 12, "/x"},
		refusal{`["\x41"]`, canonical.MalformedEscape, 2, "/0"},
		refusal{`["\u00g0"]`, canonical.MalformedEscape, 2, "/0"},
		refusal{`["\U0041"]`, canonical.MalformedEscape, 2, "/0"},
		refusal{`["\'"]`, canonical.MalformedEscape, 2, "/0"},
		refusal{"[\"a\nb\"]", canonical.ControlCharacter, 3, "/0"},
		refusal{"[\"\x00\"]", canonical.ControlCharacter, 2, "/0"},
		refusal{"{\"a\tb\":1}", canonical.ControlCharacter, 3, ""},
		refusal{"[1]\f", canonical.TrailingData, 3, ""},
		refusal{"[\v1]", canonical.UnexpectedByte, 1, "/0"},
		refusal{"[\u00a01]", canonical.UnexpectedByte, 1, "/0"},
		refusal{`[1]//`, canonical.TrailingData, 3, ""},
		refusal{`/**/1`, canonical.UnexpectedByte, 0, ""},
	)
}

func TestAnErrorQuotesNothing(t *testing.T) {
	t.Parallel()
	e := refused(t, `{"secret_4242":{"secret_4343":1,"secret_4343":"4444"}}`)
	require.Equal(t, "/secret_4242/secret_4343", e.Pointer)
	require.Equal(t, "two members of one name in an object, at byte 32", e.Error())
}

func TestPointersAreShortAndPrintable(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 255)
	refusals(t,
		refusal{`{"` + long + `":?}`, canonical.UnexpectedByte, 259, "/" + long},
		refusal{`{"a":{"` + long + `":?}}`, canonical.UnexpectedByte, 264, "/a"},
		refusal{`{"a":{"` + strings.Repeat("/", 127) + `":?}}`, canonical.UnexpectedByte, 136, "/a"}, // two bytes each
		refusal{`{"` + long[1:] + `":[?]}`, canonical.UnexpectedByte, 259, "/" + long[1:]},
		refusal{`{"a":{"\u0000":{"b":?}}}`, canonical.UnexpectedByte, 20, "/a"},
	)
	require.LessOrEqual(t, len(refused(t, strings.Repeat(`[0,0,0,0,0,0,0,0,0,0,`, 127)+"?").Pointer), 256)
}
