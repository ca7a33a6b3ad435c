package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	promconfig "github.com/prometheus/common/config"

	"github.com/setpoint-dev/setpoint/internal/config"
	execcommand "github.com/setpoint-dev/setpoint/internal/execute/command"
	"github.com/setpoint-dev/setpoint/internal/gate/rego"
	"github.com/setpoint-dev/setpoint/internal/gate/rego/regotest"
	"github.com/setpoint-dev/setpoint/internal/gate/rego/reload"
	"github.com/setpoint-dev/setpoint/internal/measure/prom"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// namedFile is one file or folder of this host that setpoint.yaml names by a key,
// and that `run` cannot do without.
type namedFile struct {
	key, path string
	check     func(path string) error
}

// fault puts an error at the key that it is about. Faults know their place.
func (s site) fault(key string, err error) spec.Faults {
	var faults spec.Faults
	if errors.As(err, &faults) {
		return faults
	}
	f := s.positions.Fault(key, "%s", strings.TrimPrefix(err.Error(), key+": "))
	if f.Pos.File == "" { // A configuration that no file gave.
		f.Pos.File = s.file
	}
	return spec.Faults{f}
}

// unmet are the faults of all files that setpoint.yaml names, but for the
// documents and the policy, which are loaded as a whole.
func (s site) unmet() spec.Faults {
	var faults spec.Faults
	for _, n := range s.namedFiles() {
		if n.path == "" {
			continue
		}
		if err := n.check(n.path); err != nil {
			faults = append(faults, s.fault(n.key, err)...)
		}
	}
	return faults
}

func (s site) namedFiles() []namedFile {
	out := []namedFile{
		{"web.tokensFile", s.cfg.Web.TokensFile, func(string) error {
			_, err := s.tokens()
			return err
		}},
		{"prompts", s.cfg.Prompts, func(string) error { return s.checkPrompts() }},
		{"proposer.rules", s.cfg.Proposer.Rules, func(string) error {
			_, err := s.rules()
			return err
		}},
	}
	if pg := s.cfg.Ledger.Postgres; pg != nil {
		out = append(out, namedFile{"ledger.postgres.dsnFile", pg.DSNFile, checkSecret})
	}
	for name, file := range s.cfg.Secrets {
		out = append(out, namedFile{spec.KeyPath("secrets", name), file, checkSecret})
	}
	for i, e := range s.cfg.Proposer.Endpoints {
		out = append(out, namedFile{spec.IndexPath("proposer.endpoints", i) + ".apiKeyFile", e.APIKeyFile, checkSecret})
	}
	for key, file := range slackSecretFiles(s.cfg.Slack) {
		out = append(out, namedFile{key, file, checkSecret})
	}
	out = append(out, s.receiverFiles()...)
	for i, src := range s.cfg.Sources {
		out = append(out, httpFiles(spec.IndexPath("sources", i)+".http", src.HTTP.HTTPClientConfig)...)
	}
	return out
}

// httpFiles are the files of Prometheus's own keys for an HTTP client.
func httpFiles(at string, c promconfig.HTTPClientConfig) []namedFile {
	out := []namedFile{
		{at + ".tls_config.ca_file", c.TLSConfig.CAFile, checkSecret},
		{at + ".tls_config.cert_file", c.TLSConfig.CertFile, checkSecret},
		{at + ".tls_config.key_file", c.TLSConfig.KeyFile, checkSecret},
	}
	if a := c.BasicAuth; a != nil {
		out = append(out, namedFile{at + ".basic_auth.username_file", a.UsernameFile, checkSecret},
			namedFile{at + ".basic_auth.password_file", a.PasswordFile, checkSecret})
	}
	if a := c.Authorization; a != nil { // The library puts bearer_token_file here too.
		out = append(out, namedFile{at + ".authorization.credentials_file", a.CredentialsFile, checkSecret})
	}
	if o := c.OAuth2; o != nil {
		out = append(out, namedFile{at + ".oauth2.client_secret_file", o.ClientSecretFile, checkSecret},
			namedFile{at + ".oauth2.client_certificate_key_file", o.ClientCertificateKeyFile, checkSecret},
			namedFile{at + ".oauth2.tls_config.ca_file", o.TLSConfig.CAFile, checkSecret},
			namedFile{at + ".oauth2.tls_config.cert_file", o.TLSConfig.CertFile, checkSecret},
			namedFile{at + ".oauth2.tls_config.key_file", o.TLSConfig.KeyFile, checkSecret})
	}
	if h := c.HTTPHeaders; h != nil {
		for name, header := range h.Headers {
			for _, file := range header.Files {
				out = append(out, namedFile{spec.KeyPath(at+".http_headers", name) + ".files", file, checkSecret})
			}
		}
	}
	return out
}

// checkSecret wants a file with content.
func checkSecret(file string) error {
	data, err := readRegular(file)
	if err == nil && strings.TrimSpace(string(data)) == "" {
		err = fmt.Errorf("the file %s is empty", file)
	}
	return err
}

// checkProgram wants a program that may be run, as it is looked at again before
// each run.
func checkProgram(program string) error {
	abs, err := filepath.Abs(program)
	if err == nil {
		_, err = execcommand.Check(abs)
	}
	return err
}

func (s site) checkPrompts() error {
	f, err := openFolder(s.cfg.Prompts, maxFile)
	if err == nil {
		_, err = propose.LoadPrompts(f)
	}
	return err
}

// policyFaults are those of the configured policies: the one that binds, which
// `run` would answer with observing only, must compile, and its own tests must
// pass. The shadow must compile; what its tests say is a warning.
func (s site) policyFaults(ctx context.Context) (faults, warnings spec.Faults) {
	const binding, shadow = "policies.path", "policies.shadow"
	if s.cfg.Policies.Path != "" {
		bad, failing := s.bundleFaults(ctx, binding, s.cfg.Policies.Path)
		faults = append(bad, failing...)
	}
	switch {
	case s.cfg.Policies.Shadow == "":
		return faults, nil
	case sameFolder(s.cfg.Policies.Path, s.cfg.Policies.Shadow):
		return append(faults, s.fault(shadow, errors.New(config.SameShadow))...), nil
	}
	bad, warnings := s.bundleFaults(ctx, shadow, s.cfg.Policies.Shadow)
	return append(faults, bad...), warnings
}

// sameFolder sees through links.
func sameFolder(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// bundleFaults are what keeps a bundle from loading, and the tests that fail in
// one that loads.
func (s site) bundleFaults(ctx context.Context, key, folder string) (bad, failing spec.Faults) {
	fsys, name, err := bundleAt(folder)
	if err != nil {
		return s.fault(key, err), nil
	}
	at := func(file string, line int, text string) spec.Fault {
		if file == "" {
			return s.positions.Fault(key, "%s", text)
		}
		return spec.Fault{Pos: spec.Position{File: path.Join(name, file), Line: line}, Text: text}
	}
	for _, f := range rego.Check(fsys).Errors() {
		bad = append(bad, at(f.File, f.Line, f.Text))
	}
	if len(bad) > 0 {
		return bad, nil
	}
	bundle, err := rego.Read(fsys)
	if err != nil {
		return s.fault(key, err), nil
	}
	ctx, cancel := context.WithTimeout(ctx, reload.TestsWithin)
	defer cancel()
	report, err := regotest.Run(ctx, bundle, regotest.Options{})
	if err != nil {
		return nil, s.fault(key, err)
	}
	for _, f := range report.Failures {
		failing = append(failing, at(f.File, f.Line, strings.TrimSpace(fmt.Sprintf("test %s of the policy fails %s", f.Name, f.Text))))
	}
	return nil, failing
}

// startFaults are all that keeps `run` from starting, or from acting, beside
// the documents.
func (a *app) startFaults(ctx context.Context, s site) spec.Faults {
	faults := s.unmet()
	bad, warnings := s.policyFaults(ctx)
	for _, w := range warnings {
		a.say("%s (the shadow policy is asked all the same)", w)
	}
	if faults = append(faults, bad...); len(faults) > 0 {
		return faults
	}
	// What the parts themselves refuse comes last: they read the files above.
	for i, src := range s.cfg.Sources {
		if _, err := prom.New(prom.Options{Name: src.Name, URL: src.URL, HTTP: src.HTTP.HTTPClientConfig}); err != nil {
			faults = append(faults, s.fault(spec.IndexPath("sources", i), err)...)
		}
	}
	if _, err := s.proposer(&fileRules{site: s}); err != nil {
		faults = append(faults, s.fault("proposer", err)...)
	}
	if _, err := s.executors(a.now); err != nil {
		faults = append(faults, s.fault("executors", err)...)
	}
	faults = append(faults, s.programFaults()...)
	if _, _, err := s.receivers(telling{now: a.now, send: true}); err != nil {
		faults = append(faults, s.fault("receivers", err)...)
	}
	return faults
}

// programFaults are those of the programs that an action or a receiver may run.
func (s site) programFaults() (faults spec.Faults) {
	for i, program := range s.cfg.Executors.Command.Allow {
		if err := checkProgram(program); err != nil {
			faults = append(faults, s.fault(spec.IndexPath("executors.command.allow", i), err)...)
		}
	}
	for i, r := range s.cfg.Receivers {
		if r.Command == nil {
			continue
		}
		if _, err := receiverProgram(*r.Command); err != nil {
			faults = append(faults, s.fault(spec.IndexPath("receivers", i)+".command.argv", err)...)
		}
	}
	return faults
}
