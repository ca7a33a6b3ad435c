package openai

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/propose"
)

// minScrubbed is the length from which a key is looked for in replies. Shorter
// ones are placeholders for servers without keys ("EMPTY", "none"), and cutting
// those out would damage honest answers.
const minScrubbed = 8

// scrubText cuts every configured key out of words.
func (c *Client) scrubText(s string) string {
	for _, k := range c.secrets() {
		s = strings.ReplaceAll(s, k, secretWord)
	}
	return s
}

// secrets are the keys, the longest first: one may begin another, and what is cut
// out of it would leave the rest.
func (c *Client) secrets() []string {
	var out []string
	for _, e := range c.endpoints {
		if k := e.key(); len(k) >= minScrubbed {
			out = append(out, k)
		}
	}
	slices.SortStableFunc(out, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return out
}

// clean makes a stranger's words fit to be shown. The keys are cut out between
// the cleaning, which could join one again, and the cut, which could leave half.
func (c *Client) clean(s string, limit int) string {
	return propose.CleanText(c.scrubText(propose.CleanText(s, len(s))), limit)
}

// scrub cuts every configured key out of bytes that came from a provider: some
// echo the request's headers in their errors. A reply that spells one with
// escapes, or with characters in between that nobody sees, is not kept at all.
func (c *Client) scrub(b []byte) []byte {
	keys := c.secrets()
	if len(keys) == 0 {
		return b
	}
	b = []byte(withoutBegun(c.scrubText(string(b)), keys))
	plain := b
	for range escapeDepth {
		plain = unescape(plain)
		seen := propose.CleanText(string(plain), len(plain))
		for _, k := range keys {
			if strings.Contains(seen, k) {
				return []byte(`"the reply is not kept: it spells an API key"`)
			}
		}
	}
	return b
}

// withoutBegun cuts off a key that has only begun: a body may break off, or exceed
// its limit, in the middle of one.
func withoutBegun(s string, keys []string) string {
	for _, k := range keys {
		for n := len(k) - 1; n >= minScrubbed; n-- {
			if rest, begun := strings.CutSuffix(s, k[:n]); begun {
				return rest + secretWord
			}
		}
	}
	return s
}

// escapeDepth: a completion is JSON, its content is JSON, and so may be what
// that quotes.
const escapeDepth = 3

var escaped = regexp.MustCompile(`\\(?:u[0-9a-fA-F]{4}|[/\\"])`)

// unescape undoes one layer of JSON's escapes, but those of line breaks.
func unescape(b []byte) []byte {
	return escaped.ReplaceAllFunc(b, func(m []byte) []byte {
		if m[1] != 'u' {
			return m[1:]
		}
		n, err := strconv.ParseUint(string(m[2:]), 16, 16)
		if err != nil {
			return m
		}
		return []byte(string(rune(n)))
	})
}
