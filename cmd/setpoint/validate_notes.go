package main

import (
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// notes are what setpoint.yaml and the documents say together that hardly can be
// meant, and that keeps nothing from running.
func (s site) notes(set spec.Set) []spec.Note {
	return append(s.cfg.Unanswered(set), s.linkNotes()...)
}

// linkNotes tell of links that lead people who read elsewhere to their own host.
func (s site) linkNotes() []spec.Note {
	at, sender := s.linked()
	if sender == "" || s.cfg.Web.ExternalURL != "" || !onlyHere(s.cfg.Web.Links()) {
		return nil
	}
	pos := s.positions.At(at)
	if s.positions.Has("web.listen") {
		pos = s.positions.At("web.listen")
	}
	return []spec.Note{{Pos: pos, Text: fmt.Sprintf(
		"links in what %s shows begin with %s, which leads nowhere on the host of who reads it: set web.externalURL to where people reach the agent",
		sender, s.cfg.Web.Links())}}
}

// linked is who shows links to people on other hosts, with its key; "" for nobody.
func (s site) linked() (key, sender string) {
	if s.cfg.Slack != nil {
		return "slack", "Slack"
	}
	for i, r := range s.cfg.Receivers {
		if r.PagerDuty != nil || r.Slack != nil {
			return spec.IndexPath("receivers", i), "receiver " + r.Name
		}
	}
	return "", ""
}

// onlyHere reports that an address is this host's own, or that of none.
func onlyHere(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil || raw == "" {
		return false
	}
	host := strings.ToLower(u.Hostname())
	ip := net.ParseIP(host)
	return host == "" || host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && (ip.IsLoopback() || ip.IsUnspecified())
}
