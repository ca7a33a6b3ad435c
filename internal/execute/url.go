package execute

import (
	"fmt"
	"net/url"
	"path"
	"strings"
	"unicode"
)

// CheckURL reports whether a URL is covered by an allow-list. It compares the
// parsed parts, so that neither user info, nor dots, nor an escape reaches
// another place than the one that was listed: scheme and host must be equal,
// and the path be that of the entry or below it.
func CheckURL(raw string, allow []string) error {
	u, err := parsePlain(raw)
	if err != nil {
		return err
	}
	for _, entry := range allow {
		if a, err := parsePlain(entry); err == nil && covers(a, u) {
			return nil
		}
	}
	return fmt.Errorf("url %s is not on the allow-list (executors.webhook.allow)", u.Redacted())
}

func parsePlain(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, fmt.Errorf("url %q is malformed", CleanText(raw, 80))
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("url %s: want http or https", u.Redacted())
	case u.User != nil:
		return nil, fmt.Errorf("url %s holds user info; use target.secret instead", u.Redacted())
	case u.Hostname() == "", u.Opaque != "":
		return nil, fmt.Errorf("url %s has no host", u.Redacted())
	case !ascii(u.Hostname()):
		return nil, fmt.Errorf("url %s: the host is not ASCII; write its xn-- form", u.Redacted())
	case u.Fragment != "":
		return nil, fmt.Errorf("url %s has a fragment, which is never sent", u.Redacted())
	case !plainPath(u):
		return nil, fmt.Errorf("url %s: the path holds dots or escaped separators", u.Redacted())
	}
	return u, nil
}

// ascii: letters that only look alike are another host.
func ascii(host string) bool {
	return strings.IndexFunc(host, func(r rune) bool { return r > unicode.MaxASCII }) < 0
}

// plainPath refuses paths that two servers may read as two places.
func plainPath(u *url.URL) bool {
	lower := strings.ToLower(u.EscapedPath())
	for _, s := range []string{"%2f", "%5c", "%2e", "%00", "\\"} {
		if strings.Contains(lower, s) {
			return false
		}
	}
	return u.Path == "" || strings.TrimSuffix(u.Path, "/") == strings.TrimSuffix(path.Clean(u.Path), "/")
}

func covers(a, u *url.URL) bool {
	if a.Scheme != u.Scheme || !strings.EqualFold(a.Hostname(), u.Hostname()) || port(a) != port(u) {
		return false
	}
	if a.RawQuery != "" && a.RawQuery != u.RawQuery {
		return false
	}
	base := strings.TrimSuffix(a.Path, "/")
	return u.Path == a.Path || strings.HasPrefix(u.Path, base+"/") || base == "" && u.Path == ""
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "https" {
		return "443"
	}
	return "80"
}
