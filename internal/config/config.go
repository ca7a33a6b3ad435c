// Package config is setpoint.yaml: where the documents, the sources, the
// proposer, the receivers and the actuators are, and the limits that bind
// every document.
//
// It takes the file as bytes and gives a Config with its defaults filled in,
// or every fault with file, line and path. It reads no other file: secrets are
// named by file and read by the caller.
package config

import (
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/spec"
)

// Config is the whole of setpoint.yaml.
type Config struct {
	// Documents are files, folders and globs.
	Documents []string `yaml:"documents"`
	Policies  Policies `yaml:"policies"`
	// Prompts is a folder; the built-in ones when empty.
	Prompts string `yaml:"prompts"`
	Sweep   Sweep  `yaml:"sweep"`
	// Sources are where to measure; the first is the default.
	Sources   []Source   `yaml:"sources,required"`
	Proposer  Proposer   `yaml:"proposer"`
	Ledger    Ledger     `yaml:"ledger"`
	Limits    Limits     `yaml:"limits"`
	Budget    Budget     `yaml:"budget"`
	Receivers []Receiver `yaml:"receivers"`
	// Approvers are groups, "@name", of principals, e.g. os:alice.
	Approvers map[string][]string `yaml:"approvers"`
	Slack     *Slack              `yaml:"slack"`
	Executors Executors           `yaml:"executors"`
	// Secrets are files by the name that documents use.
	Secrets   map[string]string `yaml:"secrets"`
	Web       Web               `yaml:"web"`
	Changes   Changes           `yaml:"changes"`
	Telemetry Telemetry         `yaml:"telemetry"`
}

// SameShadow is the fault of a shadow that is the bundle it is compared with.
const SameShadow = "is the folder of policies.path, so the two never differ: copy it and change the copy, or remove this key"

// Policies are a bundle root, and one that is asked beside it.
type Policies struct {
	// Path is the built-in bundle when empty.
	Path string `yaml:"path"`
	// Shadow rules beside Path and binds nobody; empty: there is none.
	Shadow string `yaml:"shadow"`
	// DecisionLog is nil for none.
	DecisionLog *DecisionLog `yaml:"decisionLog"`
}

// Sweep is how often every service is measured.
type Sweep struct {
	Interval time.Duration `yaml:"interval"`
	// Jitter is the share of the interval by which a pass may be early or late.
	Jitter      float64 `yaml:"jitter"`
	Concurrency int     `yaml:"concurrency"`
}

// Source is one Prometheus or compatible server.
type Source struct {
	Name string `yaml:"name,required"`
	URL  string `yaml:"url,required"`
	HTTP HTTP   `yaml:"http"`
	// Params are added to each query, e.g. dedup.
	Params           map[string]string `yaml:"params"`
	Timeout          time.Duration     `yaml:"timeout"`
	MaxSampleAge     time.Duration     `yaml:"maxSampleAge"`
	MaxConcurrency   int               `yaml:"maxConcurrency"`
	QueriesPerSecond float64           `yaml:"queriesPerSecond"`
	// Chunk is the number of services per grouped query.
	Chunk int `yaml:"chunk"`
}

// SetDefaults fills in what a source need not say.
func (s *Source) SetDefaults() {
	s.HTTP.SetDefaults()
	s.Timeout = 10 * time.Second
	s.MaxSampleAge = 90 * time.Second
	s.MaxConcurrency = 2
	s.QueriesPerSecond = 20
	s.Chunk = 100
}

// Proposer is who is asked for the next step.
type Proposer struct {
	// Provider is rules or openai.
	Provider string `yaml:"provider"`
	// Rules is the file of the rules proposer.
	Rules string `yaml:"rules"`
	// Reply is how a model is held to the schema: json_schema, tool, json_object,
	// or auto, which finds out what each endpoint honours.
	Reply        string `yaml:"reply"`
	PromptTokens int    `yaml:"promptTokens"`
	// Endpoints are tried in order.
	Endpoints []Endpoint     `yaml:"endpoints"`
	Limits    ProposerLimits `yaml:"limits"`
}

// Endpoint is one OpenAI-compatible server with its model.
type Endpoint struct {
	Name       string        `yaml:"name,required"`
	BaseURL    string        `yaml:"baseURL,required"`
	Model      string        `yaml:"model,required"`
	APIKeyFile string        `yaml:"apiKeyFile"`
	Timeout    time.Duration `yaml:"timeout"`
	// Reply takes the place of proposer.reply for this endpoint; "" is that.
	Reply string `yaml:"reply"`
}

// SetDefaults fills in what an endpoint need not say.
func (e *Endpoint) SetDefaults() { e.Timeout = 20 * time.Second }

// ProposerLimits bound what is asked of a model.
type ProposerLimits struct {
	CallsPerHour           int `yaml:"callsPerHour"`
	CallsPerServicePerHour int `yaml:"callsPerServicePerHour"`
	TokensPerDay           int `yaml:"tokensPerDay"`
}

// Ledger is where the record is kept.
type Ledger struct {
	SQLite   SQLite    `yaml:"sqlite"`
	Postgres *Postgres `yaml:"postgres"`
	// FreezeDir holds one file for each freeze.
	FreezeDir string `yaml:"freezeDir"`
}

// SQLite is a ledger in one file.
type SQLite struct {
	Path string `yaml:"path"`
}

// Postgres is a ledger for several replicas.
type Postgres struct {
	DSNFile string `yaml:"dsnFile"`
}

// Limits bind every document.
type Limits struct {
	// MaxMode caps each document's mode.
	MaxMode                  spec.Mode     `yaml:"maxMode"`
	EffectsPerHour           int           `yaml:"effectsPerHour"`
	OpenApprovals            int           `yaml:"openApprovals"`
	HintInterval             time.Duration `yaml:"hintInterval"`
	EffectsPerServicePerHour int           `yaml:"effectsPerServicePerHour"`
	MinSpacing               time.Duration `yaml:"minSpacing"`
	// StormFraction of all services, and at least StormMin of them, breached at
	// once is a storm: nothing is done until StormCooldown after it.
	StormFraction float64       `yaml:"stormFraction"`
	StormMin      int           `yaml:"stormMin"`
	StormCooldown time.Duration `yaml:"stormCooldown"`
	PermitTTL     time.Duration `yaml:"permitTTL"`
}

// Budget is the global autonomy error budget.
type Budget struct {
	Period   time.Duration `yaml:"period"`
	Capacity float64       `yaml:"capacity"`
}

// Executors say what may be sent to, whatever a document says.
type Executors struct {
	Webhook    WebhookExecutor    `yaml:"webhook"`
	Command    CommandExecutor    `yaml:"command"`
	Kubernetes KubernetesExecutor `yaml:"kubernetes"`
}

// WebhookExecutor lists URLs below which an action may go.
type WebhookExecutor struct {
	Allow []string `yaml:"allow"`
}

// CommandExecutor lists programs and variables.
type CommandExecutor struct {
	// Allow are exact programs, no folders and no patterns.
	Allow []string `yaml:"allow"`
	// EnvAllow are the variables of the agent that a program may see.
	EnvAllow []string `yaml:"envAllow"`
}

// KubernetesExecutor names a cluster.
type KubernetesExecutor struct {
	Kubeconfig string `yaml:"kubeconfig"`
}

// Web is the HTTP interface.
type Web struct {
	Listen string `yaml:"listen"`
	// ExternalURL is where people reach the agent, for links in cards and pages;
	// "": at Listen.
	ExternalURL string `yaml:"externalURL"`
	Socket      string `yaml:"socket"`
	TokensFile  string `yaml:"tokensFile"`
}

// Changes is a feed of changes from outside, as JSON lines {time, service, what,
// version}. Those posted to /hooks/changes are in the ledger instead.
type Changes struct {
	File string `yaml:"file"`
}

// Telemetry is the log's format; traces are set by the OTEL_* variables.
type Telemetry struct {
	// LogFormat is logfmt or json.
	LogFormat string `yaml:"logFormat"`
	// TraceURL is where a trace is shown, with {trace} in the place of its id; "":
	// cards link to none.
	TraceURL string `yaml:"traceURL"`
}

// Trace is where the trace of that id is shown; "" where that is not known.
func (t Telemetry) Trace(id string) string {
	if t.TraceURL == "" || id == "" {
		return ""
	}
	return strings.ReplaceAll(t.TraceURL, tracePlaceholder, id)
}

const tracePlaceholder = "{trace}"

// Links is the address that links in cards and pages begin with; "" without one.
func (w Web) Links() string {
	switch {
	case w.ExternalURL != "":
		return strings.TrimRight(w.ExternalURL, "/")
	case w.Listen != "":
		return "http://" + w.Listen
	}
	return ""
}

// Default is what holds for a key that is absent.
func Default() Config {
	const day = 24 * time.Hour
	return Config{
		Documents: []string{"slo/"},
		Sweep:     Sweep{Interval: 30 * time.Second, Jitter: 0.1, Concurrency: 8},
		Proposer: Proposer{
			Provider: "rules", Rules: "rules.yaml", Reply: "json_schema", PromptTokens: 2500,
			Limits: ProposerLimits{CallsPerHour: 60, CallsPerServicePerHour: 6, TokensPerDay: 500_000},
		},
		Ledger: Ledger{SQLite: SQLite{Path: "setpoint.db"}, FreezeDir: "setpoint.freeze"},
		Limits: Limits{
			MaxMode: spec.Observe, EffectsPerHour: 6, OpenApprovals: 5, HintInterval: 10 * time.Second,
			EffectsPerServicePerHour: 2, MinSpacing: 2 * time.Minute,
			StormFraction: 0.3, StormMin: 5, StormCooldown: 10 * time.Minute, PermitTTL: 30 * time.Second,
		},
		Budget:    Budget{Period: 28 * day, Capacity: 10},
		Web:       Web{Listen: "127.0.0.1:8321", Socket: "setpoint.sock"},
		Telemetry: Telemetry{LogFormat: "logfmt"},
	}
}

// Source returns the source of that name; "" is the first.
func (c Config) Source(name string) (Source, bool) {
	for _, s := range c.Sources {
		if name == "" || s.Name == name {
			return s, true
		}
	}
	return Source{}, false
}

// Receiver returns the receiver of that name.
func (c Config) Receiver(name string) (Receiver, bool) {
	for _, r := range c.Receivers {
		if r.Name == name {
			return r, true
		}
	}
	return Receiver{}, false
}
