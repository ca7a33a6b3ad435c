package rego

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/common/model"

	"github.com/setpoint-dev/setpoint/internal/gate"
)

// approvalKeys are the fields of an approval object.
var approvalKeys = []string{"approvers", "expires", "quorum", "reason"}

const (
	maxQuorum    = 100
	maxApprovers = 100
)

// decodeElement reads one element of a set: a reason, or in approval an object.
// Anything else is an error, never a guess.
func decodeElement(set string, e any) (gate.Rule, error) {
	if s, ok := e.(string); ok {
		return gate.Rule{Reason: s}, nil
	}
	if set != "approval" {
		return gate.Rule{}, fmt.Errorf("element of type %T, want a reason", e)
	}
	return decodeApproval(e)
}

func decodeApproval(e any) (gate.Rule, error) {
	o, ok := e.(map[string]any)
	if !ok {
		return gate.Rule{}, fmt.Errorf("element of type %T, want a reason or an object", e)
	}
	for name := range o {
		if !slices.Contains(approvalKeys, name) {
			return gate.Rule{}, fmt.Errorf("unknown field %.40q", name)
		}
	}
	var r gate.Rule
	if r.Reason, ok = o["reason"].(string); !ok {
		return gate.Rule{}, errors.New("reason must be text")
	}
	var err error
	if v, present := o["approvers"]; present {
		if r.Approvers, err = decodeApprovers(v); err != nil {
			return gate.Rule{}, err
		}
	}
	if v, present := o["quorum"]; present {
		if r.Quorum, err = decodeQuorum(v); err != nil {
			return gate.Rule{}, err
		}
	}
	if v, present := o["expires"]; present {
		if r.Expires, err = decodeExpires(v); err != nil {
			return gate.Rule{}, err
		}
	}
	return r, nil
}

// decodeApprovers reads a list or set of principals and groups. An empty one is
// an error: "nobody" must not become "whoever the document names".
func decodeApprovers(v any) ([]string, error) {
	list, ok := v.([]any)
	if !ok || len(list) == 0 || len(list) > maxApprovers {
		return nil, fmt.Errorf("approvers must be a list of 1 to %d names", maxApprovers)
	}
	var out []string
	for _, e := range list {
		s, ok := e.(string)
		if !ok || s == "" {
			return nil, errors.New("approvers must be names")
		}
		out = append(out, s)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

func decodeQuorum(v any) (int, error) {
	var f float64
	switch v := v.(type) {
	case json.Number:
		n, err := v.Int64()
		if err != nil {
			return 0, fmt.Errorf("quorum %.20s is no whole number", v)
		}
		f = float64(n)
	case float64:
		f = v
	default:
		return 0, fmt.Errorf("quorum of type %T, want a number", v)
	}
	n := int(f)
	if float64(n) != f || n < 1 || n > maxQuorum {
		return 0, fmt.Errorf("quorum must be a whole number from 1 to %d", maxQuorum)
	}
	return n, nil
}

func decodeExpires(v any) (time.Duration, error) {
	s, ok := v.(string)
	if !ok {
		return 0, fmt.Errorf("expires of type %T, want a duration such as \"15m\"", v)
	}
	d, err := model.ParseDuration(s)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("expires %.40q is no duration above zero, such as \"15m\"", s)
	}
	return time.Duration(d), nil
}
