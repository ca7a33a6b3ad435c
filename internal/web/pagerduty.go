package web

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/execute"
)

// PagerDuty is a receiver whose acknowledgements are taken.
type PagerDuty struct {
	// Receiver is its name in setpoint.yaml.
	Receiver string
	// Secret is read each time it is used, so that a rotated one needs no restart.
	Secret func() (string, error)
}

// headerPagerDuty holds the signatures of a body, one for each secret that is
// valid just now.
const headerPagerDuty = "X-PagerDuty-Signature"

// maxSignatures bounds what a stranger may have compared.
const maxSignatures = 20

// pagerduty takes an acknowledgement from PagerDuty: somebody has seen a page there,
// so nobody else is woken. Whoever can sign for PagerDuty can stop that chain, and
// nothing else: it is no answer to a ticket, and ends no page.
func (s *Server) pagerduty(w http.ResponseWriter, r *http.Request) {
	if len(s.o.PagerDuty) == 0 {
		s.fail(w, r, notFound("no receiver of setpoint.yaml has pagerduty.webhookSecretFile, so nothing is taken here"))
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		s.fail(w, r, &Error{Status: http.StatusRequestEntityTooLarge, Code: "too-large", Message: "the body is larger than 1 MiB"})
		return
	case err != nil:
		s.fail(w, r, bad("the body cannot be read"))
		return
	}
	receivers := s.signedBy(r.Header.Values(headerPagerDuty), body)
	if len(receivers) == 0 {
		s.fail(w, r, &Error{Status: http.StatusUnauthorized, Code: "signature", Message: "no signature of the body is that of a receiver's webhookSecretFile"})
		return
	}
	s.answerJSON(w, r, func(r *http.Request) (any, error) { return s.acknowledged(r, receivers, body) })
}

// signedBy are the receivers whose secret signed the body. Each signature is
// compared with each secret, in constant time.
func (s *Server) signedBy(headers []string, body []byte) []string {
	given := signatures(headers)
	var out []string
	for _, p := range s.o.PagerDuty {
		secret, err := p.Secret()
		if err != nil || secret == "" {
			// An empty key would make everybody's signature good.
			s.o.Logger.Error("the webhook secret of a receiver cannot be read, so its acknowledgements are refused", "receiver", p.Receiver, "err", err)
			continue
		}
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write(body)
		want, good := mac.Sum(nil), false
		for _, sig := range given {
			good = hmac.Equal(want, sig) || good
		}
		if good {
			out = append(out, p.Receiver)
		}
	}
	return out
}

// signatures are those of version 1, whole ones only.
func signatures(headers []string) [][]byte {
	var out [][]byte
	for part := range strings.SplitSeq(strings.Join(headers, ","), ",") {
		text, ok := strings.CutPrefix(strings.TrimSpace(part), "v1=")
		sig, err := hex.DecodeString(text)
		if ok && err == nil && len(sig) == sha256.Size && len(out) < maxSignatures {
			out = append(out, sig)
		}
	}
	return out
}

// pagerdutyEvent is the part of a webhook's body, version 3, that is read.
type pagerdutyEvent struct {
	Event struct {
		Type  string    `json:"event_type"`
		At    time.Time `json:"occurred_at"`
		Agent struct {
			ID      string `json:"id"`
			Summary string `json:"summary"`
		} `json:"agent"`
		Data struct {
			Key string `json:"incident_key"`
		} `json:"data"`
	} `json:"event"`
}

// acknowledged records that the page of the incident was seen. What is not about an
// open page of ours is answered like what is: PagerDuty would send it again, and
// turn the webhook off at last.
func (s *Server) acknowledged(r *http.Request, receivers []string, body []byte) (any, error) {
	var e pagerdutyEvent
	if err := json.Unmarshal(body, &e); err != nil {
		return nil, bad("the body is no event of PagerDuty's webhooks, version 3")
	}
	if e.Event.Type != "incident.acknowledged" || e.Event.Data.Key == "" {
		return done("Ignored", ""), nil
	}
	page, via := s.incident(receivers, e.Event.Data.Key, e.Event.At)
	if page == "" {
		return done("Ignored", ""), nil
	}
	err := s.o.Desk.Ack(r.Context(), page, agent(e.Event.Agent.ID, e.Event.Agent.Summary), via)
	var late *approve.Refusal
	switch {
	case errors.As(err, &late):
		return done("Ignored", ""), nil // Somebody took it, or it ended, a moment ago.
	case err != nil:
		return nil, err
	}
	return done("Ack", page), nil
}

// incident is the open page, seen by nobody yet, that one of the receivers holds
// under the key. An event from before the page is about an earlier one with the
// same key: sent once more, by whomever, it must not quieten this one.
func (s *Server) incident(receivers []string, key string, at time.Time) (page, via string) {
	s.o.View(func(v View) {
		for id, p := range v.State.Pages {
			if !p.EndedAt.IsZero() || p.AckedBy != "" || !at.IsZero() && at.Before(p.Since) {
				continue
			}
			for name, d := range v.State.Deliveries[id] {
				if d.Ref == key && slices.Contains(receivers, name) {
					page, via = id, name
				}
			}
		}
	})
	return page, via
}

var agentID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// agent names who acknowledged. The id is PagerDuty's own, a name is what somebody
// chose.
func agent(id, summary string) string {
	switch name := execute.CleanText(summary, 60); {
	case agentID.MatchString(id):
		return "pagerduty:" + id
	case name != "":
		return "pagerduty:" + name
	}
	return "pagerduty:unknown"
}
