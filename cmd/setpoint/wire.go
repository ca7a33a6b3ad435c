package main

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/execute"
	execcommand "github.com/setpoint-dev/setpoint/internal/execute/command"
	execwebhook "github.com/setpoint-dev/setpoint/internal/execute/webhook"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/measure/changefile"
	"github.com/setpoint-dev/setpoint/internal/measure/prom"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/propose/openai"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/internal/reconcile/freezefile"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/prompts"
)

// wiring is a site with every part of the loop made.
type wiring struct {
	site    site
	options reconcile.Options
	freezes *freezefile.Dir
	// feed is nil without a change file.
	feed *changefile.File
}

// wire makes the parts of the loop from the configuration. A nil store is a
// loop without a past. A policy that does not load is no error: then nothing
// is done.
func (a *app) wire(ctx context.Context, s site, store ledger.Store, f purpose) (*wiring, error) {
	w := &wiring{site: s, freezes: a.freezeDir(s.cfg.Ledger.FreezeDir)}
	measurer, err := newFleet(s.cfg.Sources, a.now, f)
	if err != nil {
		return nil, err
	}
	inFile := &fileRules{site: s}
	var proposer reconcile.Proposer = inFile
	if f.ask {
		if proposer, err = s.proposer(inFile, a.traced); err != nil {
			return nil, err
		}
		learn(ctx, proposer, f, s.cfg.Limits.MaxMode)
	}
	executors, err := s.executors(a.now)
	if err != nil {
		return nil, err
	}
	receivers, silencers, err := s.receivers(telling{now: a.now, send: f.send, installation: installation(ctx, store)})
	if err != nil {
		return nil, err
	}
	w.options = reconcile.Options{
		Config: s.cfg, Documents: inFile.documents, Measurer: measurer, Proposer: proposer, Rules: inFile,
		Executors: executors,
		Receivers: receivers, Silencers: silencers, Freezes: w.freezes, Now: a.now,
	}
	w.showContext(a, measurer, f)
	if s.rulesStandIn() {
		w.options.Fallback = inFile
	}
	if store != nil {
		w.options.Store = store
	}
	w.options.Policy, w.options.PolicyFault = s.loadPolicy(ctx, f.send)
	w.options = rigged(w.options)
	return w, nil
}

// executors are all that may send, by the word before the dot of an action's
// uses.
func (s site) executors(now func() time.Time) (map[string]execute.Executor, error) {
	hooks, err := execwebhook.New(execwebhook.Options{
		Allow: s.cfg.Executors.Webhook.Allow, Secret: s.secret, Now: now,
	})
	if err != nil {
		return nil, err
	}
	programs, err := execcommand.New(execcommand.Options{
		Allow: s.cfg.Executors.Command.Allow, EnvAllow: s.cfg.Executors.Command.EnvAllow,
		Directory: filepath.Dir(s.file), Now: now,
	})
	if err != nil {
		return nil, err
	}
	return map[string]execute.Executor{"webhook": hooks, "command": programs}, nil
}

// loadPolicy gives the policy, or why there is none; then nothing is done.
func (s site) loadPolicy(ctx context.Context, tested bool) (reconcile.Policy, string) {
	load := s.compiled
	if tested {
		load = s.policy
	}
	p, err := load(ctx)
	if err != nil {
		return nil, err.Error()
	}
	return p, ""
}

// purpose is what a loop is made for. What is not needed is not read, so that
// a plan works on a machine without the agent's secrets.
type purpose struct {
	// ask the configured proposer, otherwise the rules.
	ask bool
	// send: an agent, which also pages, and whose policy passed its own tests.
	send bool
	// onQuery counts queries; nil counts none.
	onQuery func(source, result string)
	// onNote hears what sources remark, once each; nil hears nothing.
	onNote func(source, text string)
	// feed hears what is wrong with the change file.
	feed changefile.Options
}

func newFleet(sources []config.Source, now func() time.Time, p purpose) (*prom.Fleet, error) {
	var all []*prom.Source
	for _, c := range sources {
		src, err := prom.New(prom.Options{
			Name: c.Name, URL: c.URL, HTTP: c.HTTP.HTTPClientConfig, Params: c.Params, Timeout: c.Timeout,
			MaxConcurrency: c.MaxConcurrency, QueriesPerSecond: c.QueriesPerSecond, Chunk: c.Chunk,
			OnQuery: p.onQuery, OnNote: p.onNote, Now: now,
		})
		if err != nil {
			return nil, err
		}
		all = append(all, src)
	}
	f, err := prom.NewFleet(all...)
	return f, err
}

// secret reads a named secret's file at the moment of use, so that a rotated
// one needs no restart.
func (s site) secret(name string) ([]byte, bool) {
	path, ok := s.cfg.Secrets[name]
	if !ok {
		return nil, false
	}
	data, err := readRegular(path)
	if err != nil {
		return nil, false
	}
	return []byte(config.NewSecret(data).Reveal()), true
}

// readSecret reads the file of a secret that is needed at the start.
func readSecret(what, path string) (config.Secret, error) {
	if path == "" {
		return config.Secret{}, nil
	}
	data, err := readRegular(path)
	if err != nil {
		return config.Secret{}, fmt.Errorf("%s: %w", what, err)
	}
	secret := config.NewSecret(data)
	if secret.Empty() {
		return config.Secret{}, fmt.Errorf("%s: the file %s is empty", what, path)
	}
	return secret, nil
}

// secretFiles are all files that hold secrets, by what they are for.
func (s site) secretFiles() map[string]string {
	out := map[string]string{"web.tokensFile": s.cfg.Web.TokensFile}
	for name, path := range s.cfg.Secrets {
		out["secrets."+name] = path
	}
	if pg := s.cfg.Ledger.Postgres; pg != nil {
		out["ledger.postgres.dsnFile"] = pg.DSNFile
	}
	for _, e := range s.cfg.Proposer.Endpoints {
		out["apiKeyFile of endpoint "+e.Name] = e.APIKeyFile
	}
	for _, r := range s.cfg.Receivers {
		if r.Webhook != nil {
			out["secretFile of receiver "+r.Name] = r.Webhook.SecretFile
		}
		if r.PagerDuty != nil {
			out["routingKeyFile of receiver "+r.Name] = r.PagerDuty.RoutingKeyFile
			out["webhookSecretFile of receiver "+r.Name] = r.PagerDuty.WebhookSecretFile
		}
	}
	maps.Copy(out, slackSecretFiles(s.cfg.Slack))
	return out
}

// checkSecrets refuses to start without a secret, and warns of one that
// everybody on this host can read.
func (s site) checkSecrets(log *slog.Logger) error {
	for what, path := range s.secretFiles() {
		if _, err := readSecret(what, path); err != nil {
			return err
		}
		info, err := os.Stat(path)
		if err == nil && info.Mode().Perm()&0o004 != 0 {
			log.Warn("a secret is readable by every user of this host; chmod 600 it", "secret", what, "file", path)
		}
	}
	return nil
}

// proposer is the configured one; a client of a model is made with what is set.
func (s site) proposer(inFile *fileRules, set ...func(*openai.Options)) (reconcile.Proposer, error) {
	if s.cfg.Proposer.Provider != "openai" {
		return inFile, nil
	}
	var folder fs.FS = prompts.FS
	if s.cfg.Prompts != "" {
		opened, err := openFolder(s.cfg.Prompts, maxFile)
		if err != nil {
			return nil, err
		}
		folder = opened
	}
	templates, err := propose.LoadPrompts(folder)
	if err != nil {
		return nil, err
	}
	o := openai.Options{
		Reply: openai.Reply(s.cfg.Proposer.Reply), Prompts: templates, PromptTokens: s.cfg.Proposer.PromptTokens,
	}
	for _, e := range s.cfg.Proposer.Endpoints {
		key, err := readSecret("apiKeyFile of endpoint "+e.Name, e.APIKeyFile)
		if err != nil {
			return nil, err
		}
		o.Endpoints = append(o.Endpoints, openai.Endpoint{
			Name: e.Name, BaseURL: e.BaseURL, Model: e.Model, Key: openai.Key(key.Reveal()), Timeout: e.Timeout, Reply: openai.Reply(e.Reply),
		})
	}
	for _, f := range set {
		f(&o)
	}
	client, err := openai.New(o)
	if err != nil {
		return nil, err
	}
	return &model{client: client, first: s.cfg.Proposer.Endpoints[0]}, nil
}

// fileRules is the rules proposer, read again with the documents.
type fileRules struct {
	site  site
	rules atomic.Pointer[ruleBook]
}

// documents loads documents and rules together: they must fit each other, and
// neither takes effect without the other.
func (r *fileRules) documents() (spec.Set, error) {
	set, err := r.site.documents()
	if err != nil {
		return spec.Set{}, err
	}
	read, err := r.site.rules()
	if err != nil {
		return spec.Set{}, err
	}
	if err := read.Validate(set); err != nil {
		return spec.Set{}, err
	}
	r.rules.Store(&ruleBook{read})
	return set, nil
}
