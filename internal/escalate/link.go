package escalate

import (
	"net/url"
	"strings"
)

// Link is where the agent at that address shows the page; "" without an address.
func (p Page) Link(external string) string {
	if external == "" {
		return ""
	}
	link := strings.TrimRight(external, "/") + "/api/v1/pages"
	if p.Service != "" {
		link += "?" + url.Values{"service": {p.Service}}.Encode()
	}
	return link
}
