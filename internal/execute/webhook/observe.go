package webhook

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Observe asks the action's statusURL for a key. It is a GET, never signed:
// what it asks changes nothing. Whatever is not a 200 with a boolean known is
// no answer.
func (e *Executor) Observe(ctx context.Context, a spec.Action, key gate.Key) execute.Observation {
	if a.Target.StatusURL == "" {
		return execute.Observation{Detail: "the action has no statusURL"}
	}
	o, err := e.observe(ctx, a, key)
	if err != nil {
		return execute.Observation{Detail: "no answer: " + execute.CleanText(err.Error(), execute.MaxDetail)}
	}
	return o
}

func (e *Executor) observe(ctx context.Context, a spec.Action, key gate.Key) (execute.Observation, error) {
	if err := execute.CheckURL(a.Target.StatusURL, e.allow); err != nil {
		return execute.Observation{}, err
	}
	u, err := url.Parse(a.Target.StatusURL)
	if err != nil {
		return execute.Observation{}, err
	}
	q := u.Query()
	q.Set("key", string(key))
	u.RawQuery = q.Encode()
	if a.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, a.Timeout)
		defer cancel()
	}
	req := (&http.Request{
		Method: http.MethodGet, URL: u, Host: u.Host,
		Header: http.Header{"Accept": {"application/json"}, "User-Agent": {e.userAgent}},
	}).WithContext(ctx)
	resp, err := e.transport.RoundTrip(req)
	if err != nil {
		return execute.Observation{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := readAnswer(resp)
	if err != nil {
		return execute.Observation{}, err
	}
	if resp.StatusCode != http.StatusOK {
		return execute.Observation{}, errors.New(detail(resp.StatusCode, body, nil))
	}
	o := execute.ParseStatus(body)
	if o.Known && o.State == nil {
		o.State = propose.Live{}
	}
	return o, nil
}
