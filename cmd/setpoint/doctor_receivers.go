package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/escalate/alertmanager"
	"github.com/setpoint-dev/setpoint/internal/execute"
)

// receiverChecks look whether people could be told. No page is sent.
func (e *examination) receiverChecks() []examine {
	var out []examine
	if len(e.site.cfg.Receivers) == 0 {
		out = append(out, examine{group: aboutReceivers, limit: localLimit, run: func(context.Context) []checkItem {
			return []checkItem{subject{aboutReceivers, ""}.warned("no receiver is configured: nobody is told of what cannot be done",
				"name one under receivers in setpoint.yaml: alertmanager, webhook, pagerduty, slack or command")}
		}})
	}
	for _, r := range e.site.cfg.Receivers {
		out = append(out, examine{group: aboutReceivers, subject: r.Name, limit: remoteLimit, run: func(ctx context.Context) []checkItem {
			return []checkItem{e.receiverItem(ctx, r)}
		}})
	}
	return append(out, examine{group: aboutReceivers, subject: "slack", limit: remoteLimit, run: e.slackItems})
}

func (e *examination) receiverItem(ctx context.Context, r config.Receiver) checkItem {
	switch {
	case r.Alertmanager != nil:
		return e.alertmanagerItem(ctx, r)
	case r.Webhook != nil:
		return e.webhookItem(ctx, r)
	case r.PagerDuty != nil:
		return pagerdutyItem(ctx, r)
	case r.Command != nil:
		return commandItem(r)
	}
	return subject{"receivers/slack", r.Name}.skipped("its channel is looked at with the others of the workspace")
}

// pagerdutyItem connects and says nothing: any event may wake somebody. The keys
// are read, and not tried.
func pagerdutyItem(ctx context.Context, r config.Receiver) checkItem {
	s := subject{"receivers/pagerduty", r.Name}
	for _, f := range [][2]string{{"routingKeyFile", r.PagerDuty.RoutingKeyFile}, {"webhookSecretFile", r.PagerDuty.WebhookSecretFile}} {
		if _, err := readSecret(f[0]+" of receiver "+r.Name, f[1]); err != nil {
			return s.failed(err.Error(), fmt.Sprintf("write the key into %s, or change %s of receiver %s: no page reaches anybody through it until then", f[1], f[0], r.Name))
		}
	}
	u, err := url.Parse(r.PagerDuty.URL)
	if err != nil || u.Hostname() == "" {
		return s.failed("its url is malformed", "correct url of receiver "+r.Name+" in setpoint.yaml")
	}
	return connectVerdict(s, hostPort(u), u.Scheme == "https", connectTo(ctx, u))
}

// commandItem looks whether the program could be run, as it is looked at again
// before each page. It is not run.
func commandItem(r config.Receiver) checkItem {
	s := subject{"receivers/command", r.Name}
	file, err := receiverProgram(*r.Command)
	if err != nil {
		return s.failed(execute.CleanText(err.Error(), execute.MaxDetail), "correct that, or argv of receiver "+r.Name+" in setpoint.yaml: no page reaches anybody through it until then")
	}
	return s.fine("%s can be run; it was not", file)
}

func (e *examination) alertmanagerItem(ctx context.Context, r config.Receiver) checkItem {
	s := subject{"receivers/alertmanager", r.Name}
	am, err := e.site.alertmanager(r, e.app.now)
	if err != nil {
		return s.failed(execute.CleanText(err.Error(), execute.MaxDetail), "correct url of receiver "+r.Name+" in setpoint.yaml")
	}
	status, err := am.Status(ctx)
	return alertmanagerVerdict(s, status, err)
}

// alertmanagerVerdict judges what an Alertmanager says of itself.
func alertmanagerVerdict(s subject, st alertmanager.Status, err error) checkItem {
	switch {
	case errors.Is(err, alertmanager.ErrSilences):
		return s.failed(err.Error(), fmt.Sprintf("let receiver %s answer /api/v2/silences (a proxy may refuse it): silences that nobody can read hold every action", s.name))
	case err != nil:
		if remedy := receiverServer(s.name).remedy(err.Error()); remedy != "" {
			return s.failed(err.Error(), remedy+"; no page reaches anybody until then")
		}
		return s.failed(err.Error(), fmt.Sprintf("look whether receiver %s runs, and its url in setpoint.yaml is that of Alertmanager itself, with its route prefix: no page reaches anybody until then", s.name))
	case st.Cluster == "settling":
		return s.warned(fmt.Sprintf("version %s, its cluster is settling: alerts may be sent twice", st.Version),
			"wait until it is ready; if it stays so, look at --cluster.peer of its peers")
	}
	text := fmt.Sprintf("version %s, cluster %s", st.Version, st.Cluster)
	if st.Peers > 0 {
		text += " of " + count(st.Peers, "peer")
	}
	return s.fine("%s, %s readable; no page was sent", text, count(st.Silences, "active silence"))
}

func receiverServer(name string) server {
	return server{
		name: "receiver " + name, key: "url of receiver " + name + " in setpoint.yaml",
		credentials: "let receiver " + name + " take requests of this host without credentials: setpoint.yaml holds none for an Alertmanager",
	}
}

// webhookItem connects and says nothing: whatever is posted to a receiver may
// wake somebody.
func (e *examination) webhookItem(ctx context.Context, r config.Receiver) checkItem {
	s := subject{"receivers/webhook", r.Name}
	if _, err := readSecret("secretFile of receiver "+r.Name, r.Webhook.SecretFile); err != nil {
		return s.failed(err.Error(), "write the secret into "+r.Webhook.SecretFile+", or change secretFile of receiver "+r.Name)
	}
	u, err := url.Parse(r.Webhook.URL)
	if err != nil || u.Hostname() == "" {
		return s.failed("its url is malformed", "correct url of receiver "+r.Name+" in setpoint.yaml")
	}
	return connectVerdict(s, hostPort(u), u.Scheme == "https", connectTo(ctx, u))
}

// connectVerdict judges a connection on which nothing was sent. The address is
// all that is shown of the URL, whose path often is a secret.
func connectVerdict(s subject, address string, encrypted bool, err error) checkItem {
	var unverified *tls.CertificateVerificationError
	var foreign tls.RecordHeaderError
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns):
		return s.failed("no address for "+address+": "+execute.CleanText(dns.Err, 80), "correct the host in url of receiver "+s.name+", or the name server of this host")
	case errors.As(err, &unverified):
		return s.failed("TLS with "+address+": "+execute.CleanText(unverified.Err.Error(), 200), "renew the certificate there, or add its authority to those of this host")
	case errors.As(err, &foreign):
		return s.failed("TLS with "+address+": what answers there speaks no TLS", "let url of receiver "+s.name+" begin with http://, or name the port that speaks TLS")
	case err != nil:
		return s.failed("no connection to "+address+": "+execute.CleanText(err.Error(), 200),
			cmp.Or(receiverServer(s.name).unconnected(err.Error()), "look whether receiver "+s.name+" runs and is reached from this host"))
	case encrypted:
		return s.fine("%s accepts a TLS connection; no page was sent, so whether it takes one is not known", address)
	}
	return s.fine("%s accepts a connection; no page was sent, so whether it takes one is not known", address)
}

func hostPort(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Host
	case u.Scheme == "https":
		return net.JoinHostPort(u.Hostname(), "443")
	}
	return net.JoinHostPort(u.Hostname(), "80")
}

// connectTo opens a connection, TLS included, and closes it.
func connectTo(ctx context.Context, u *url.URL) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", hostPort(u))
	if err != nil {
		return err
	}
	if u.Scheme == "https" {
		t := tls.Client(conn, &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12})
		err = t.HandshakeContext(ctx)
	}
	return errors.Join(err, conn.Close())
}
