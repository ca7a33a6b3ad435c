package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// rules are the policies of one moment. A decision takes them once, so that none
// is made of two.
type rules struct {
	// policy is nil while none is loaded, and fault says why.
	policy Policy
	fault  string
	// since is when policy began to rule in this process.
	since time.Time
	// stale is why the policy folder is not what rules, and staleSince since
	// when; "" while it is, and while no policy is loaded.
	stale      string
	staleSince time.Time
	// shadow binds nobody; nil without one.
	shadow Policy
}

// staleAfter is how long the policy folder may be at fault before people are
// told. It is time enough to finish an edit or a roll-out; whoever leaves it
// longer believes in a rule that does not rule.
const staleAfter = 15 * time.Minute

// take puts another whole policy into force.
func (ru *rules) take(policy Policy, now time.Time) {
	if ru.policy == nil || ru.policy.Revision() != policy.Revision() {
		ru.since = now
	}
	ru.policy, ru.fault, ru.stale, ru.staleSince = policy, "", "", time.Time{}
}

// trouble is what people have to be told about the policy; "" without.
func (ru rules) trouble(now time.Time) string {
	switch {
	case ru.fault != "":
		return "no policy is loaded, nothing is done: " + ru.fault
	case ru.stale == "" || now.Sub(ru.staleSince) <= staleAfter:
		return ""
	}
	const named = 12 // digits of a digest are a name for people
	revision := ru.policy.Revision()
	return fmt.Sprintf("policy %s, in force since %s, still rules, because its folder has been at fault since %s: %s",
		revision[:min(named, len(revision))], ru.since.UTC().Format(time.RFC3339), ru.staleSince.UTC().Format(time.RFC3339), ru.stale)
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
	r.rule.take(policy, r.o.Now())
	r.mu.Unlock()
	r.tel.policyLoaded(r.rules())
	return nil
}

// PolicyFaulted says why what is in the policy folder does not rule; "" says
// that it does. What rules goes on ruling, and people are told when it lasts.
// Without a policy nothing is done until SetPolicy, and this is why.
func (r *Reconciler) PolicyFaulted(fault string) {
	now := r.o.Now()
	r.mu.Lock()
	switch ru := &r.rule; {
	case ru.policy == nil && fault != "":
		ru.fault = fault
	case fault == "":
		ru.stale, ru.staleSince = "", time.Time{}
	default:
		if ru.stale == "" {
			ru.staleSince = now
		}
		ru.stale = fault
	}
	r.mu.Unlock()
	r.tel.policyLoaded(r.rules())
}

// ShadowFaulted says why what is in the folder of the shadow policy is not asked;
// "" says that it is. Nobody has to act on it.
func (r *Reconciler) ShadowFaulted(fault string) { r.tel.shadowFailed.Set(bit(fault != "")) }

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
