package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"

	promconfig "github.com/prometheus/common/config"

	"github.com/setpoint-dev/setpoint/internal/config"
)

// minCut is the length from which a key is cut out of what is shown and kept, in
// bytes. Shorter ones are taken for placeholders.
const minCut = 8

// secretItems look at each file that holds a secret, and at the way of those
// that are sent.
func (e *examination) secretItems() []checkItem {
	var out []checkItem
	files := e.allSecretFiles()
	keys := map[string]config.Endpoint{}
	for _, ep := range e.site.cfg.Proposer.Endpoints {
		keys["apiKeyFile of endpoint "+ep.Name] = ep
	}
	for _, what := range slices.Sorted(maps.Keys(files)) {
		if files[what] == "" || what == "web.tokensFile" {
			continue
		}
		secret, err := readSecret(what, files[what])
		info, statErr := os.Stat(files[what])
		var mode fs.FileMode
		if statErr == nil {
			mode = info.Mode()
		}
		out = append(out, secretVerdict(what, files[what], mode, err))
		if ep, ok := keys[what]; ok && err == nil && len(secret.Reveal()) < minCut {
			out = append(out, shortKey(ep))
		}
	}
	return append(out, wayItems(e.site.cfg)...)
}

// allSecretFiles are those of the site, and those that its sources' HTTP clients
// read by themselves.
func (e *examination) allSecretFiles() map[string]string {
	files := e.site.secretFiles()
	for _, src := range e.site.cfg.Sources {
		for _, n := range httpFiles("http of source "+src.Name, src.HTTP.HTTPClientConfig) {
			if !public(n.key) {
				files[n.key] = n.path
			}
		}
	}
	return files
}

// shortKey: a short API key could stand in any word, so it is not looked for in
// what a server repeats.
func shortKey(ep config.Endpoint) checkItem {
	return subject{"config/key", "endpoint " + ep.Name}.warned(
		fmt.Sprintf("the key in %s is shorter than %d characters, so it is not cut out of what the server repeats: logs, the ledger and pages may show it", ep.APIKeyFile, minCut),
		fmt.Sprintf("use a longer key; or none, if the server wants none: take apiKeyFile of endpoint %s out of setpoint.yaml", ep.Name))
}

// wayItems are the servers to which a secret is sent where everybody on the way
// can read it. The secrets of actuators and of webhook receivers sign, and are
// not sent.
func wayItems(cfg config.Config) []checkItem {
	var out []checkItem
	for _, ep := range cfg.Proposer.Endpoints {
		if ep.APIKeyFile != "" && readable(ep.BaseURL) {
			out = append(out, wayVerdict("endpoint "+ep.Name, "baseURL", ep.BaseURL))
		}
	}
	for _, src := range cfg.Sources {
		if sendsSecret(src.HTTP.HTTPClientConfig) && readable(src.URL) {
			out = append(out, wayVerdict("source "+src.Name, "url", src.URL))
		}
	}
	if s := cfg.Slack; s != nil && readable(s.APIURL) {
		out = append(out, wayVerdict("slack", "apiURL", s.APIURL))
	}
	return out
}

func wayVerdict(who, key, raw string) checkItem {
	host := ""
	if u, err := url.Parse(raw); err == nil {
		host = u.Host
	}
	return subject{"config/way", who}.warned(
		fmt.Sprintf("its credentials are sent to %s over plain http: whoever is on the way can read them", host),
		fmt.Sprintf("let %s of %s begin with https://, and renew the secret; or reach it over loopback", key, who))
}

// readable reports that what is sent to a URL leaves this host unencrypted.
func readable(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" {
		return false
	}
	host := strings.ToLower(u.Hostname())
	ip := net.ParseIP(host)
	return host != "localhost" && !strings.HasSuffix(host, ".localhost") && (ip == nil || !ip.IsLoopback())
}

// sendsSecret reports that a client sends what is a secret by itself. That of
// OAuth 2 is sent elsewhere, the token that it gives goes here.
func sendsSecret(c promconfig.HTTPClientConfig) bool {
	if c.BasicAuth != nil || c.Authorization != nil || c.OAuth2 != nil || c.BearerToken != "" || c.BearerTokenFile != "" {
		return true
	}
	if c.HTTPHeaders == nil {
		return false
	}
	for _, h := range c.HTTPHeaders.Headers {
		if len(h.Secrets)+len(h.Files) > 0 {
			return true
		}
	}
	return false
}

// public reports that what a key names is no secret.
func public(key string) bool {
	for _, end := range []string{"ca_file", "cert_file", "username_file"} {
		if strings.HasSuffix(key, "."+end) {
			return true
		}
	}
	return false
}

// secretVerdict judges one file that holds a secret.
func secretVerdict(what, file string, mode fs.FileMode, err error) checkItem {
	s := subject{"config/secret", what}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s.failed("the file "+file+" is not there", fmt.Sprintf("write the secret into %s, or change %s in setpoint.yaml", file, what))
	case errors.Is(err, fs.ErrPermission):
		return s.failed("the file "+file+" may not be read by this user", fmt.Sprintf("run this as the agent's user, or `chown` %s to it", file))
	case err != nil:
		return s.failed(strings.TrimPrefix(err.Error(), what+": "), fmt.Sprintf("write the secret into %s as a regular file, or change %s in setpoint.yaml", file, what))
	case mode.Perm()&0o004 != 0:
		return s.warned(fmt.Sprintf("every user of this host can read %s (mode %04o)", file, mode.Perm()), "`chmod 600 "+file+"`, and renew the secret if others had access")
	}
	return s.fine("%s is there and readable by its owner", file)
}
