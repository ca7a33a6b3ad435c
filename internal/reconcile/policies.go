package reconcile

import (
	"context"
	"errors"
	"fmt"

	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// rules are the policies of one moment. A decision takes them once, so that none
// is made of two.
type rules struct {
	// policy is nil while none is loaded, and fault says why.
	policy Policy
	fault  string
	// shadow binds nobody; nil without one.
	shadow Policy
}

func (r *Reconciler) rules() rules {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rule
}

func (r *Reconciler) policyFault() string { return r.rules().fault }

// SetPolicy swaps the policy for another whole one. The ledger knows its bundle
// before it rules; where that cannot be recorded, the last one stays.
func (r *Reconciler) SetPolicy(ctx context.Context, policy Policy) error {
	if err := r.recordPolicy(ctx, policy, false); err != nil {
		return fmt.Errorf("the last good policy stays: %w", err)
	}
	r.mu.Lock()
	r.rule.policy, r.rule.fault = policy, ""
	r.mu.Unlock()
	r.tel.policyLoaded(policy)
	return nil
}

// SetShadow swaps the shadow policy; nil ends it.
func (r *Reconciler) SetShadow(ctx context.Context, shadow Policy) error {
	if shadow != nil {
		if err := r.recordPolicy(ctx, shadow, true); err != nil {
			return fmt.Errorf("the last shadow policy stays: %w", err)
		}
	}
	r.mu.Lock()
	r.rule.shadow = shadow
	r.mu.Unlock()
	return nil
}

// recordPolicies keeps the bundles that rule from the start on.
func (r *Reconciler) recordPolicies(ctx context.Context) error {
	rules := r.rules()
	var errs []error
	if rules.policy != nil {
		errs = append(errs, r.recordPolicy(ctx, rules.policy, false))
	}
	if rules.shadow != nil {
		errs = append(errs, r.recordPolicy(ctx, rules.shadow, true))
	}
	return errors.Join(errs...)
}

func (r *Reconciler) recordPolicy(ctx context.Context, p Policy, shadow bool) error {
	bundle := p.Pack()
	body := ledger.Policy{Revision: p.Revision(), Data: p.DataDigest(), Shadow: shadow}
	err := r.book.one(ctx, func(s *ledger.State) (ledger.Draft, error) { return ledger.PolicyDraft(s, body, bundle) })
	if errors.Is(err, ledger.ErrExists) {
		return nil
	}
	return err
}
