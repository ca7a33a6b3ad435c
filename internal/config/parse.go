package config

import (
	"path/filepath"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Parse reads setpoint.yaml strictly and fills in the defaults. The error is
// spec.Faults with everything that is wrong; the Config is then empty.
func Parse(file spec.File) (Config, error) {
	doc, faults := spec.OneDocument(file)
	c := Default()
	faults = append(faults, doc.Decode(&c)...)
	if !doc.Root().IsMapping() {
		return Config{}, faults.Err() // What could not be read lacks no key.
	}
	k := checker{positions: doc.Positions(), faults: faults}
	k.config(c)
	if err := k.faults.Err(); err != nil {
		return Config{}, err
	}
	return c, nil
}

// SetDirectory makes each relative path one below dir, the folder of
// setpoint.yaml. It is called once, before the paths are used.
func (c *Config) SetDirectory(dir string) {
	for _, path := range c.paths() {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(dir, *path)
		}
	}
	for name, path := range c.Secrets {
		if path != "" && !filepath.IsAbs(path) {
			c.Secrets[name] = filepath.Join(dir, path)
		}
	}
	for i := range c.Sources {
		c.Sources[i].HTTP.SetDirectory(dir)
	}
	for _, r := range c.Receivers {
		if r.Command != nil && len(r.Command.Argv) > 0 {
			r.Command.Argv[0] = programBelow(dir, r.Command.Argv[0])
		}
	}
}

// programBelow is a program that a receiver names, found from dir. A word without
// a slash is looked up in PATH; one with a slash keeps one, because "./siren.sh"
// in the working directory, joined to "siren.sh", would be looked up there too.
func programBelow(dir, program string) string {
	if !strings.Contains(program, "/") || filepath.IsAbs(program) {
		return program
	}
	path := filepath.Join(dir, program)
	if !strings.Contains(path, "/") {
		path = "./" + path
	}
	return path
}

// oneFolder reports whether the shadow is the bundle that it would be compared
// with, as far as the names tell.
func (p Policies) oneFolder() bool {
	return p.Path != "" && p.Shadow != "" && filepath.Clean(p.Path) == filepath.Clean(p.Shadow)
}

// paths are all values that name a file or a folder, but for a receiver's program.
func (c *Config) paths() []*string {
	out := []*string{
		&c.Policies.Path, &c.Policies.Shadow, &c.Prompts, &c.Proposer.Rules,
		&c.Ledger.SQLite.Path, &c.Ledger.FreezeDir, &c.Web.Socket, &c.Web.TokensFile, &c.Changes.File,
		&c.Executors.Kubernetes.Kubeconfig,
	}
	for i := range c.Documents {
		out = append(out, &c.Documents[i])
	}
	for i := range c.Executors.Command.Allow {
		out = append(out, &c.Executors.Command.Allow[i])
	}
	for i := range c.Proposer.Endpoints {
		out = append(out, &c.Proposer.Endpoints[i].APIKeyFile)
	}
	for _, r := range c.Receivers {
		out = append(out, r.paths()...)
	}
	if c.Policies.DecisionLog != nil {
		out = append(out, &c.Policies.DecisionLog.Path)
	}
	if c.Ledger.Postgres != nil {
		out = append(out, &c.Ledger.Postgres.DSNFile)
	}
	if c.Slack != nil {
		out = append(out, &c.Slack.BotTokenFile, &c.Slack.AppTokenFile, &c.Slack.SigningSecretFile)
	}
	return out
}

// paths are those of one receiver.
func (r Receiver) paths() (out []*string) {
	if r.Webhook != nil {
		out = append(out, &r.Webhook.SecretFile)
	}
	if r.PagerDuty != nil {
		out = append(out, &r.PagerDuty.RoutingKeyFile, &r.PagerDuty.WebhookSecretFile)
	}
	return out
}
