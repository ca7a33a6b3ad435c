package cut

import (
	"fmt"
	"net/url"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// remediation writes every duration out, cut.
func (c *cutter) remediation(s *yaml.Node) error {
	svc, ok := c.set.Service(text(s, "service"))
	if !ok { // Not reached: the documents were loaded.
		return fmt.Errorf("there is no service %q", text(s, "service"))
	}
	r := svc.Remediation
	setDuration(s, "actionWindow", max(c.by(r.ActionWindow).Truncate(time.Second), least))
	if r.BreachFor > 0 {
		setDuration(s, "breachFor", c.by(r.BreachFor))
	}
	setDuration(s, "holdFor", c.by(r.HoldFor))
	setDuration(s, "unknownFor", c.by(r.UnknownFor))
	setDuration(s, "escalateWithin", max(c.by(r.EscalateWithin), c.verdictAfter(svc)))
	c.objectives(child(s, "objectives"), svc)
	if err := c.actions(get(s, "actions"), svc); err != nil {
		return err
	}
	setDuration(child(s, "budget"), "period", c.by(r.Budget.Period))
	return nil
}

// verdictAfter is the latest that an action is judged. No page may come before
// it, which a least duration could undo.
func (c *cutter) verdictAfter(svc spec.Service) time.Duration {
	if len(svc.Remediation.Actions) == 0 {
		return 0
	}
	var settle, judge time.Duration
	for _, a := range svc.Remediation.Actions {
		settle = max(settle, c.by(a.Settle))
	}
	for _, o := range svc.Objectives {
		judge = max(judge, c.by(o.JudgeWindow))
	}
	return settle + judge
}

// objectives gives each objective its judge window, cut, and the one pair. An
// SLO of several objectives may have a key for itself and one for each.
func (c *cutter) objectives(overrides *yaml.Node, svc spec.Service) {
	for _, o := range svc.Objectives {
		key := o.SLO
		if get(overrides, o.ID) != nil {
			key = o.ID
		}
		by := child(overrides, key)
		by.Style &^= yaml.FlowStyle
		setDuration(by, "judgeWindow", c.by(o.JudgeWindow))
		set(by, "burnRates", c.pair())
	}
	if len(overrides.Content) > 0 {
		overrides.Style &^= yaml.FlowStyle
	}
}

// pair is the one burn rate.
func (c *cutter) pair() *yaml.Node {
	b := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Style: yaml.FlowStyle}
	setDuration(b, "short", c.BurnRate.Short)
	setDuration(b, "long", c.BurnRate.Long)
	set(b, "factor", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!float", Value: fmt.Sprint(c.BurnRate.Factor)})
	set(b, "page", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true"})
	return &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: []*yaml.Node{b}}
}

func (c *cutter) actions(actions *yaml.Node, svc spec.Service) error {
	if actions == nil {
		return nil
	}
	for _, node := range actions.Content {
		a, ok := svc.Action(text(node, "name"))
		if !ok { // Not reached: the documents were loaded.
			return fmt.Errorf("service %s has no action %q", svc.Name, text(node, "name"))
		}
		name := svc.Name + "/" + a.Name
		cooldown, overlaid := c.Cooldown[name]
		if overlaid {
			c.overlaid[name] = true
		} else {
			cooldown = c.by(a.Cooldown)
		}
		setDuration(node, "settle", c.by(a.Settle))
		setDuration(node, "cooldown", cooldown)
		setDuration(node, "timeout", c.by(a.Timeout))
		setDuration(node, "maxLateness", c.by(a.MaxLateness))
		if err := c.retarget(get(node, "target")); err != nil {
			return fmt.Errorf("action %s: %w", name, err)
		}
	}
	return nil
}

// retarget moves an action's URLs to another scheme and host.
func (c *cutter) retarget(target *yaml.Node) error {
	if c.targets == nil {
		return nil
	}
	for _, key := range []string{"url", "statusURL"} {
		raw := text(target, key)
		if raw == "" {
			continue
		}
		u, err := url.Parse(raw)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		u.Scheme, u.Host = c.targets.Scheme, c.targets.Host
		setText(target, key, u.String())
	}
	return nil
}
