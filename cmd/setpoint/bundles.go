package main

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/gate/rego/reload"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
)

// shadowRules are for a policy that binds nobody: it must not cost a decision
// much time, and it may be unfinished.
var shadowRules = reload.Rules{Deadline: 250 * time.Millisecond, Lenient: true}

// bundleFolder is a policy folder of a running agent. What it holds comes into
// force by set.
type bundleFolder struct {
	*reload.Watcher
	log *slog.Logger
	// key is that of setpoint.yaml, path the folder; "" is the built-in policy.
	key, path string
	set       func(ctx context.Context, p reconcile.Policy) error
	// faulted hears why what is in the folder is not in force; "": it is.
	faulted func(fault string)
	// inForce is the revision, and faultOf the one that was in force when the
	// folder came to be at fault. Only the watcher touches them, one look at a
	// time.
	inForce, faultOf string
}

// watchPolicies loads the shadow policy and makes the watchers of the folders.
// They run beside the loop.
func (d *daemon) watchPolicies(ctx context.Context) {
	o := reload.Options{Fault: d.options.PolicyFault}
	if p, ok := d.options.Policy.(*rego.Policy); ok {
		o.InForce = p.Bundle()
	}
	d.policy = d.watch(&bundleFolder{
		key: "policies.path", path: d.site.cfg.Policies.Path,
		set:     func(ctx context.Context, p reconcile.Policy) error { return d.loop.SetPolicy(ctx, p) },
		faulted: func(fault string) { d.loop.PolicyFaulted(fault) },
	}, o)
	if d.site.cfg.Policies.Shadow == "" {
		return
	}
	l, err := d.site.shadowPolicy(ctx)
	o = reload.Options{Rules: shadowRules}
	if err != nil {
		o.Fault = err.Error()
	} else {
		d.options.Shadow, o.InForce = l.Policy, l.Policy.Bundle()
	}
	d.shadowFault = o.Fault
	d.shadow = d.watch(&bundleFolder{
		key: "policies.shadow", path: d.site.cfg.Policies.Shadow,
		set:     func(ctx context.Context, p reconcile.Policy) error { return d.loop.SetShadow(ctx, p) },
		faulted: func(fault string) { d.loop.ShadowFaulted(fault) },
	}, o)
	if err != nil {
		d.shadow.log.Error("the shadow policy does not load; none is asked until it does", "err", err)
		return
	}
	d.shadow.warn(l)
}

// watch makes the watcher of a folder.
func (d *daemon) watch(b *bundleFolder, o reload.Options) *bundleFolder {
	b.log = d.log.With("key", b.key, "folder", bundleName(b.path))
	b.inForce = o.InForce.Revision()
	o.Now, o.Swap, o.Changed = d.app.now, b.swap, b.changed
	o.Open = func() (fs.FS, error) {
		fsys, _, err := bundleAt(b.path)
		return fsys, err
	}
	if b.path != "" {
		o.Interval = d.site.cfg.Sweep.Interval
		n := reload.NewNotifier(b.path, o.Interval, b.unwatched)
		o.Hints = n.Hints()
		d.beside = append(d.beside, n.Run)
	}
	b.Watcher = reload.New(o)
	d.beside = append(d.beside, b.Run)
	return b
}

// swap brings a policy into force. The ledger holds it before it rules.
func (b *bundleFolder) swap(ctx context.Context, l reload.Loaded) error {
	if err := b.set(ctx, l.Policy); err != nil {
		return err
	}
	b.took(l)
	return nil
}

// took says what came into force.
func (b *bundleFolder) took(l reload.Loaded) {
	from, to := b.inForce, l.Policy.Revision()
	if b.inForce = to; from == to {
		return
	}
	b.log.Info("policy swapped", "from", cmp.Or(short(from), "none"), "to", short(to), "data", short(l.Policy.DataDigest()),
		"tests", l.Tests.Passed, "coverage", fmt.Sprintf("%.0f%%", l.Tests.Coverage))
	b.warn(l)
}

func (b *bundleFolder) warn(l reload.Loaded) {
	if l.Warning != nil {
		b.log.Warn("tests of the shadow policy fail; it is asked all the same", "err", l.Warning.Brief())
	}
}

// changed tells of a fault of the folder, and of its end.
func (b *bundleFolder) changed(s reload.State) {
	if s.Fault == nil {
		b.faulted("")
		if s.InForce == b.faultOf { // Otherwise the swap has said it.
			b.log.Info("the policy folder holds what is in force again", "policy", short(s.InForce))
		}
		return
	}
	b.faultOf = s.InForce
	b.faulted(s.Fault.Brief())
	if s.InForce == "" {
		b.log.Error("policy not swapped; none is in force", "err", s.Fault.Brief())
		return
	}
	b.log.Error("policy not swapped; the last good one stays", "policy", short(s.InForce), "err", s.Fault.Brief())
}

// unwatched tells why changes are found by looking alone.
func (b *bundleFolder) unwatched(err error) {
	if err == nil {
		b.log.Info("the policy folder is watched for changes")
		return
	}
	b.log.Warn("the policy folder cannot be watched; it is looked at in each sweep interval", "err", err)
}
