package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/gate"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// ProbePrefix begins the key of every probe. No real key begins so: behind its
// service a key has a window, which begins with a digit.
const ProbePrefix = "doctor:probe-"

// Probe is one request that asks for nothing to be done.
type Probe struct {
	Service string
	Action  spec.Action
	// Key begins with ProbePrefix.
	Key        gate.Key
	Parameters propose.Parameters
}

// Answer is what an actuator said to a probe.
type Answer struct {
	Status int
	// Result is the word of the body, "" without one.
	Result string
	// Duplicate: the body says that the key was there before.
	Duplicate bool
	// Detail is for people: status and a shortened, cleaned body.
	Detail string
}

// Permits says why an action of this executor would be refused before anything
// is sent: its URLs must be allowed and its secret must be there. It contacts
// nothing.
func (e *Executor) Permits(a spec.Action) error {
	if a.Uses != Uses {
		return fmt.Errorf("%s is not in this version, which has %s", a.Uses, Uses)
	}
	if err := execute.CheckURL(a.Target.URL, e.allow); err != nil {
		return err
	}
	if a.Target.StatusURL != "" {
		if err := execute.CheckURL(a.Target.StatusURL, e.allow); err != nil {
			return err
		}
	}
	_, err := e.post(a, "", nil)
	return err
}

// DryRun sends one POST with "dryRun": true, which an actuator answers as it
// would the same request without it, remembers the key and changes nothing. It
// needs no permit, so it refuses whatever an actuator could take for an action:
// a key that could be real, and a target that does not promise dedup, which is
// where the contract has a dry run at all.
func (e *Executor) DryRun(ctx context.Context, p Probe) (Answer, error) {
	a := p.Action
	switch {
	case !strings.HasPrefix(string(p.Key), ProbePrefix):
		return Answer{}, fmt.Errorf("the key %q of a probe must begin with %s", p.Key, ProbePrefix)
	case !a.Target.Dedup:
		return Answer{}, errors.New("the target does not say dedup: true, so nobody promised that it knows a dry run")
	case a.Timeout <= 0:
		return Answer{}, fmt.Errorf("action %q has no timeout", a.Name)
	}
	if err := e.Permits(a); err != nil {
		return Answer{}, err
	}
	body, err := probeBody(p)
	if err != nil {
		return Answer{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, a.Timeout)
	defer cancel()
	req, err := e.post(a, p.Key, body)
	if err != nil {
		return Answer{}, err
	}
	resp, err := e.transport.RoundTrip(req.WithContext(ctx))
	if err != nil {
		return Answer{}, errors.New(execute.CleanText(err.Error(), execute.MaxDetail))
	}
	defer func() { _ = resp.Body.Close() }()
	read, lost := readAnswer(resp)
	out := Answer{Status: resp.StatusCode, Detail: detail(resp.StatusCode, read, lost)}
	var said struct {
		Result    string `json:"result"`
		Duplicate bool   `json:"duplicate"`
	}
	if lost == nil && json.Unmarshal(read, &said) == nil {
		out.Result, out.Duplicate = execute.CleanText(said.Result, 40), said.Duplicate
	}
	return out, nil
}

func probeBody(p Probe) ([]byte, error) {
	digest, err := gate.Digest(p.Service, p.Key, p.Action, p.Parameters)
	if err != nil {
		return nil, err
	}
	values := p.Parameters
	if values == nil {
		values = propose.Parameters{}
	}
	return json.Marshal(struct {
		execute.Envelope
		DryRun bool `json:"dryRun"`
	}{execute.Envelope{
		APIVersion: spec.Group, Key: p.Key, Digest: digest, Service: p.Service, Action: p.Action.Name, Parameters: values,
	}, true})
}
