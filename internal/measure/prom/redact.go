package prom

import (
	"encoding/base64"
	"net/url"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/prometheus/common/config"
)

// maxDetail is as much of a source's words as a table or a page can show.
const maxDetail = 200

// shortestSecret keeps a parameter such as dedup=true from blanking words.
const shortestSecret = 8

// redactor makes words of a source fit to be shown: a broken or hostile server
// may echo what it was sent.
type redactor struct {
	secrets []string
	files   []string
}

func newRedactor(u *url.URL, opts Options) redactor {
	var r redactor
	add := func(s string) {
		if s != "" {
			r.secrets = append(r.secrets, s)
		}
	}
	if password, ok := u.User.Password(); ok {
		add(password)
		add(basic(u.User.Username(), password))
	}
	for _, values := range u.Query() {
		for _, v := range values {
			if len(v) >= shortestSecret {
				add(v)
			}
		}
	}
	secrets, files := credentials(opts.HTTP)
	for _, s := range secrets {
		add(s)
	}
	r.files = slices.DeleteFunc(files, func(f string) bool { return f == "" })
	return r
}

// credentials lists the secrets of an HTTP configuration and the files that
// hold further ones.
func credentials(c config.HTTPClientConfig) (secrets, files []string) {
	secrets = append(secrets, string(c.BearerToken))
	files = append(files, c.BearerTokenFile)
	if b := c.BasicAuth; b != nil {
		secrets = append(secrets, string(b.Password), basic(b.Username, string(b.Password)))
		files = append(files, b.PasswordFile)
	}
	if a := c.Authorization; a != nil {
		secrets = append(secrets, string(a.Credentials))
		files = append(files, a.CredentialsFile)
	}
	if o := c.OAuth2; o != nil {
		secrets = append(secrets, string(o.ClientSecret), string(o.ClientCertificateKey))
		files = append(files, o.ClientSecretFile, o.ClientCertificateKeyFile)
	}
	if c.HTTPHeaders != nil {
		for _, h := range c.HTTPHeaders.Headers {
			for _, s := range h.Secrets {
				secrets = append(secrets, string(s))
			}
			files = append(files, h.Files...)
		}
	}
	return secrets, files
}

func basic(user, password string) string {
	if password == "" {
		return ""
	}
	return base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
}

// clean removes secrets and control characters and shortens.
func (r redactor) clean(s string) string {
	if s == "" {
		return ""
	}
	secrets := slices.Clone(r.secrets)
	for _, f := range r.files {
		// Files may be rotated, so they are read when there is something to say.
		if b, err := os.ReadFile(f); err == nil {
			secrets = append(secrets, strings.TrimSpace(string(b)))
		}
	}
	// The longest first, so that no secret leaves its tail behind a shorter one.
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	for _, secret := range secrets {
		if secret != "" {
			s = strings.ReplaceAll(s, secret, "<secret>")
		}
	}
	return shorten(printable(s))
}

// printable drops what moves a cursor, turns text around or hides.
func printable(s string) string {
	s = strings.Map(func(c rune) rune {
		switch {
		case unicode.IsSpace(c), unicode.IsControl(c):
			return ' '
		case c == unicode.ReplacementChar, unicode.In(c, unicode.Cf, unicode.Co, unicode.Cs):
			return -1
		default:
			return c
		}
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

func shorten(s string) string {
	runes := []rune(s)
	if len(runes) <= maxDetail {
		return s
	}
	return string(runes[:maxDetail-1]) + "…"
}
