package main

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// server is who was asked over HTTP, in the words of a remedy.
type server struct {
	// name is e.g. "source main", key the key that says where it is, with its
	// place, e.g. "url of source main in setpoint.yaml".
	name, key string
	// credentials says what to do where it asks who this is.
	credentials string
}

var httpStatus = regexp.MustCompile(`\bHTTP (\d{3})\b`)

// statusIn is the first status of HTTP that words tell of, 0 without one.
func statusIn(text string) int {
	m := httpStatus.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1]) // Three digits.
	return n
}

// remedy says what to do about a server that gave no answer, by what came
// instead; "" where the words tell neither of a status nor of a connection.
func (s server) remedy(text string) string {
	if status := statusIn(text); status != 0 {
		return s.answered(status)
	}
	return s.unconnected(text)
}

// answered: it runs and is reached, and gave another status than a good one.
func (s server) answered(status int) string {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return s.credentials
	case http.StatusNotFound, http.StatusGone:
		return fmt.Sprintf("correct %s: a server answers there, and has nothing at that path (a prefix of a proxy may be missing)", s.key)
	case http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return fmt.Sprintf("correct %s: a server answers there, and does not take this kind of request at that path", s.key)
	case http.StatusTooManyRequests:
		return fmt.Sprintf("let %s take more requests from this host: it has a limit on them", s.name)
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return fmt.Sprintf("look whether %s runs behind the proxy that answers for it, and at the logs of both", s.name)
	}
	switch status / 100 {
	case 3:
		return fmt.Sprintf("let %s name the place that it leads to: redirects are not followed", s.key)
	case 5:
		return fmt.Sprintf("look at the log of %s: it is reached, and fails", s.name)
	}
	return fmt.Sprintf("look at the log of %s, and at %s: it is reached, and does not take what is asked", s.name, s.key)
}

// unconnected goes by the words of Go's network, which every client here hands
// on.
func (s server) unconnected(text string) string {
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(text, w) {
				return true
			}
		}
		return false
	}
	switch {
	case has("no such host", "server misbehaving", "lookup "):
		return fmt.Sprintf("correct the host in %s, or the name server of this host", s.key)
	case has("connection refused"):
		return fmt.Sprintf("look whether %s runs, and listens where %s says", s.name, s.key)
	case has("HTTP response to HTTPS client"):
		return fmt.Sprintf("let %s begin with http://, or name the port that speaks TLS", s.key)
	case has("certificate", "x509:", "tls:"):
		return fmt.Sprintf("renew the certificate of %s, or add its authority to those of this host", s.name)
	case has("malformed HTTP response"):
		return fmt.Sprintf("correct %s: what answers there speaks no HTTP (or TLS, where https:// is meant)", s.key)
	case has("timeout", "deadline exceeded", "timed out", "no route to host", "unreachable"):
		return fmt.Sprintf("look whether %s is reached from this host (routes, a firewall that swallows) and answers in time", s.name)
	case has("EOF", "connection reset", "broken pipe"):
		return fmt.Sprintf("look at the log of %s: it takes the connection and closes it without an answer", s.name)
	}
	return ""
}
