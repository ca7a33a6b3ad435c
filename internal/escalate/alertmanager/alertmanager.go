// Package alertmanager delivers pages to Alertmanager's API v2, and reads its
// silences. It takes a page and gives an alert with the page's labels, posted
// again while the page is open, since Alertmanager forgets what is not.
package alertmanager

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"time"

	httptransport "github.com/go-openapi/runtime/client"
	"github.com/go-openapi/strfmt"
	"github.com/prometheus/alertmanager/api/v2/client"
	"github.com/prometheus/alertmanager/api/v2/client/alert"
	"github.com/prometheus/alertmanager/api/v2/models"
	"github.com/prometheus/common/config"

	"github.com/setpoint-dev/setpoint/internal/escalate"
	"github.com/setpoint-dev/setpoint/internal/execute"
)

// Lasts is how long Alertmanager keeps a page that is no longer posted: long
// enough for an agent that is down, short enough to end by itself.
const Lasts = 4 * time.Hour

// defaultTimeout bounds one request.
const defaultTimeout = 10 * time.Second

// Options are one receiver of setpoint.yaml.
type Options struct {
	Name string
	// URL is Alertmanager's base URL, with its route prefix.
	URL  string
	HTTP config.HTTPClientConfig
	// Timeout of one request; zero is 10 s.
	Timeout time.Duration
	Now     func() time.Time
	// ExternalURL is where the agent's pages are; empty links nowhere.
	ExternalURL string
}

func (o Options) validate() (*url.URL, error) {
	u, err := url.Parse(o.URL)
	switch {
	case o.Now == nil:
		return nil, errors.New("no clock (Options.Now)")
	case err != nil:
		return nil, errors.New("the url is malformed")
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return nil, fmt.Errorf("url %s: want http://host or https://host", u.Redacted())
	case u.User != nil:
		return nil, fmt.Errorf("url %s: put credentials under http.basic_auth", u.Redacted())
	}
	return u, nil
}

// Receiver is one Alertmanager. It is safe for concurrent use.
type Receiver struct {
	name     string
	timeout  time.Duration
	now      func() time.Time
	external string
	api      *client.AlertmanagerAPI
}

var _ escalate.Receiver = (*Receiver)(nil)

// New returns a receiver.
func New(o Options) (*Receiver, error) {
	u, err := o.validate()
	if err != nil {
		return nil, fmt.Errorf("receiver %q: alertmanager: %w", o.Name, err)
	}
	c, err := config.NewClientFromConfig(o.HTTP, "setpoint-alertmanager", config.WithUserAgent("setpoint"))
	if err != nil {
		return nil, fmt.Errorf("receiver %q: alertmanager: http: %w", o.Name, err)
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	transport := httptransport.NewWithClient(u.Host, path.Join("/", u.Path, "api/v2"), []string{u.Scheme}, c)
	return &Receiver{
		name: o.Name, timeout: o.Timeout, now: o.Now, external: o.ExternalURL,
		api: client.New(transport, strfmt.Default),
	}, nil
}

// Name returns the receiver's name.
func (r *Receiver) Name() string { return r.name }

// Send posts the page: until now + 4 h while it is open, until now when it
// ended. The same labels are the same alert, so sending twice changes nothing.
func (r *Receiver) Send(ctx context.Context, p escalate.Page, _ string) (ref string, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	params := alert.NewPostAlertsParamsWithContext(ctx).WithTimeout(r.timeout).
		WithAlerts(models.PostableAlerts{r.postable(p)})
	if _, err := r.api.Alert.PostAlerts(params); err != nil {
		return "", fmt.Errorf("page %s to alertmanager %s: %w", p.ID, r.name, readable(err))
	}
	return "", nil
}

func (r *Receiver) postable(p escalate.Page) *models.PostableAlert {
	now := r.now()
	ends := now.Add(Lasts)
	if !p.EndedAt.IsZero() {
		ends = now
	}
	starts := p.Since
	if starts.IsZero() || starts.After(ends) {
		// Alertmanager refuses an alert that ends before it starts, and a page
		// must not be lost to a clock.
		starts = ends
		if now.Before(ends) {
			starts = now
		}
	}
	return &models.PostableAlert{
		Annotations: filled(p.Annotations()),
		StartsAt:    strfmt.DateTime(starts.UTC()),
		EndsAt:      strfmt.DateTime(ends.UTC()),
		Alert:       models.Alert{Labels: labels(p), GeneratorURL: strfmt.URI(r.external)},
	}
}

// labels are those that a page is posted with, and that silences are held to.
func labels(p escalate.Page) models.LabelSet { return filled(p.Labels()) }

// filled leaves out empty values, as Alertmanager does.
func filled(m map[string]string) models.LabelSet {
	set := models.LabelSet{}
	for k, v := range m {
		if v != "" {
			set[k] = v
		}
	}
	return set
}

// readable takes the message out of a refusal, and hides the rest of the
// transport's words, which may hold a URL with credentials.
func readable(err error) error {
	var bad *alert.PostAlertsBadRequest
	if errors.As(err, &bad) {
		return fmt.Errorf("refused (400): %s", execute.CleanText(bad.Payload, 200))
	}
	var failed *alert.PostAlertsInternalServerError
	if errors.As(err, &failed) {
		return fmt.Errorf("failed (500): %s", execute.CleanText(failed.Payload, 200))
	}
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
