package main

import (
	"context"
	"net/url"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
)

// discreet is a channel of cards that is told no secret of this site. secrets are
// asked each time, because they rotate.
type discreet struct {
	reconcile.Board
	secrets func() []string
}

func (d discreet) Post(ctx context.Context, c approve.Card) (approve.Message, error) {
	return d.Board.Post(ctx, escalate.RedactCard(c, d.secrets()))
}

func (d discreet) Update(ctx context.Context, m approve.Message, c approve.Card) error {
	return d.Board.Update(ctx, m, escalate.RedactCard(c, d.secrets()))
}

func (d discreet) Say(ctx context.Context, m approve.Message, n approve.Note) error {
	return d.Board.Say(ctx, m, escalate.RedactNote(n, d.secrets()))
}

// secretValues are the secrets of this site as they are now: what no page may
// show. A file that cannot be read has none that could have got into a page.
func (s site) secretValues() []string {
	files := s.secretFiles() // setpoint.yaml itself may hold none.
	var out []string
	for _, src := range s.cfg.Sources {
		for _, n := range httpFiles("http of source "+src.Name, src.HTTP.HTTPClientConfig) {
			if !public(n.key) {
				files[n.key] = n.path
			}
		}
	}
	for what, path := range files {
		secret, err := readSecret(what, path)
		if err != nil || secret.Empty() {
			continue
		}
		out = append(out, secret.Reveal(), strings.TrimSpace(secret.Reveal()))
		switch what {
		case "web.tokensFile":
			out = append(out, tokenValues(secret.Reveal())...)
		case "ledger.postgres.dsnFile":
			out = append(out, dsnPasswords(secret.Reveal())...)
		}
	}
	return out
}

// tokenValues are the tokens of a tokens file, whose form was checked when it was
// loaded.
func tokenValues(file string) []string {
	var tokens map[string]string
	if yaml.Unmarshal([]byte(file), &tokens) != nil {
		return nil
	}
	var out []string
	for _, token := range tokens {
		out = append(out, token)
	}
	return out
}

// dsnPasswords is the password of a data source name of PostgreSQL, in either form.
func dsnPasswords(dsn string) []string {
	var out []string
	if u, err := url.Parse(strings.TrimSpace(dsn)); err == nil && u.User != nil {
		if password, ok := u.User.Password(); ok {
			out = append(out, password)
		}
	}
	for field := range strings.FieldsSeq(dsn) {
		if password, ok := strings.CutPrefix(field, "password="); ok {
			out = append(out, strings.Trim(password, "'"))
		}
	}
	return out
}
