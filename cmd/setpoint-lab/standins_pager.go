package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/setpoint-dev/setpoint/internal/lab/pager"
)

// fakepager is how a pager is to be.
type fakepager struct {
	listen, routingKeyFile, webhookURL, webhookSecretFile string
	control                                               bool
}

func fakepagerCommand() *cobra.Command {
	var f fakepager
	cmd := &cobra.Command{
		Use:   "fakepager",
		Short: "A receiver of pages that writes down what people would see",
		Long: `Take pages as Alertmanager's webhook JSON (POST /page), by the part of
Alertmanager's API v2 that Setpoint uses (/api/v2/alerts, /api/v2/silences), and as
events of PagerDuty's API v2 (POST /v2/enqueue). GET /pages gives what people would
have seen of the first two. The first line of standard output is its URL.

With --control another process may acknowledge, see and disturb it while it runs:

  GET    /control/incidents  PagerDuty's; /control/journal everything that came, in order
  POST   /control/ack        {"key": "<dedup_key>", "name": "Ann"}: a person does it, which
                             PagerDuty tells --webhook-url; /control/resolve likewise
  PUT    /control/fault      ?endpoint=webhook|alertmanager|pagerduty|change|*, the body is one of
                             {"status": 503}, {"status": 429, "retryAfter": 30}, {"hang": "5s"},
                             {"dropReply": true} (taken, and the answer is lost), {"dropRequest": true};
                             ?next=2 for two requests, ?for=10m&after=1m for a while
  DELETE /control/fault      ?endpoint=..., or all
  PUT    /control/refuse     ?for=10s closes the port so long, for all of it`,
		Example: `  setpoint-lab fakepager --listen 127.0.0.1:9999
  # setpoint.yaml: receivers: [{name: oncall, webhook: {url: "http://127.0.0.1:9999/page"}}]
  #            or: receivers: [{name: oncall, alertmanager: {url: "http://127.0.0.1:9999"}}]
  #            or: receivers: [{name: oncall, pagerduty: {routingKeyFile: pd.key, url: "http://127.0.0.1:9999/v2/enqueue"}}]
  curl -s http://127.0.0.1:9999/pages
  setpoint-lab fakepager --control --webhook-url http://127.0.0.1:8321/hooks/pagerduty --webhook-secret-file hook.key
  curl -d '{"key": "...", "name": "Ann"}' http://127.0.0.1:9999/control/ack`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	listenFlag(cmd, &f.listen)
	flags := cmd.Flags()
	flags.StringVar(&f.routingKeyFile, "routing-key-file", "", "PagerDuty takes events with this key alone")
	flags.StringVar(&f.webhookURL, "webhook-url", "", "PagerDuty posts there what people do")
	flags.StringVar(&f.webhookSecretFile, "webhook-secret-file", "", "and signs it with this secret")
	flags.BoolVar(&f.control, "control", false, "let other processes acknowledge, see and disturb below /control/")
	return cmd
}

func (f fakepager) run(cmd *cobra.Command) error {
	d := pager.PagerDuty{WebhookURL: f.webhookURL}
	if err := readSecret("--routing-key-file", f.routingKeyFile, &d.RoutingKey); err != nil {
		return err
	}
	var secret string
	if err := readSecret("--webhook-secret-file", f.webhookSecretFile, &secret); err != nil {
		return err
	}
	if secret != "" {
		d.WebhookSecrets = []string{secret}
	}
	p := pager.New(time.Now)
	p.PagerDuty(d)
	l, err := loopback(cmd.Context(), f.listen)
	if err != nil {
		return err
	}
	gate := pager.NewGate(l)
	return serveOn(cmd, gate, controlled(pagerHandler(p), gateControl(p, gate), f.control))
}

// gateControl is the pager's control, and the port's.
func gateControl(p *pager.Pager, gate *pager.Gate) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/control/", p.Control())
	mux.HandleFunc("PUT /control/refuse", func(w http.ResponseWriter, req *http.Request) {
		// Without an end nobody could open it again: control is on that port.
		d, err := time.ParseDuration(req.URL.Query().Get("for"))
		if err != nil || d <= 0 {
			http.Error(w, fmt.Sprintf("for is a duration such as 10s, not %q", req.URL.Query().Get("for")), http.StatusBadRequest)
			return
		}
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusNoContent)
		// What is answered is not cut off: the port closes once this has left.
		_ = http.NewResponseController(w).Flush()
		gate.RefuseFor(d)
	})
	return mux
}

// pagerHandler is the pager with a page that shows what it holds.
func pagerHandler(p *pager.Pager) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", p.Handler())
	mux.HandleFunc("GET /pages", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		_ = enc.Encode(map[string]any{"items": p.Pages()}) // The client is gone; nothing is lost.
	})
	return mux
}
