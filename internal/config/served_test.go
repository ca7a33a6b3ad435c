package config_test

import (
	"net/url"
	"path"
	"strings"
)

// served reads a URL as a lenient server would: decoded twice, backslashes as
// slashes, dots resolved.
func served(t interface{ Fatalf(string, ...any) }, raw string) (host, cleaned string) {
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatalf("allowed, but no URL: %q", raw)
	}
	p := strings.ReplaceAll(u.Path, `\`, "/")
	return strings.ToLower(u.Hostname()), path.Clean("/" + p)
}

func under(p, root string) bool { return p == root || strings.HasPrefix(p, root+"/") }

func replace(text string, words map[string]string) string {
	pairs := make([]string, 0, 2*len(words))
	for k, v := range words {
		pairs = append(pairs, "<"+k+">", v)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}
