package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
	"github.com/setpoint-dev/setpoint/internal/web"
	"github.com/setpoint-dev/setpoint/prompts"
)

func (a *app) promptCommand() *cobra.Command {
	return group("prompt", "What a model is asked", a.promptRenderCommand(), a.promptTestCommand())
}

// promptFlags are the flags of `prompt render`.
type promptFlags struct {
	service, decision, ledger, output string
	recorded                          bool
}

const promptRenderLong = `Show with what a model would be asked about a service, whatever state the service
is in: the system and the user message, and the JSON Schema of the reply, as they
are measured now. A question that is asked later has the numbers of then. No model
is asked, nothing is written and nothing is sent; it works without a ledger and
beside a running agent. Where no model would be asked, it says why: the provider,
the mode, or a limit of proposer.limits that is used up.

With --recorded it shows what was asked instead: the bytes of each request and
reply of the newest proposal for which a model was asked about the service;
with --decision those of one decision. What was measured then is in them.

Tables show control, invisible and bidirectional characters as escapes, so that
no text of a stranger drives the terminal; -o json has every character.`

func (a *app) promptRenderCommand() *cobra.Command {
	var f promptFlags
	cmd := &cobra.Command{
		Use:   "render [service]",
		Short: "Show what a model would be asked now, or was asked",
		Long:  promptRenderLong,
		Example: `  setpoint prompt render checkout
  setpoint prompt render checkout -o json | jq -r .user
  setpoint prompt render checkout --recorded
  setpoint prompt render --decision d118 -o yaml`,
		Args: func(cmd *cobra.Command, args []string) error { return f.named(cmd, args) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case f.service == "" && f.decision == "":
				return usageError(cmd, "want a service, or --decision for what was asked")
			case f.ledger != "" && !f.recorded && f.decision == "":
				return usageError(cmd, "--ledger has what was asked: say --recorded or --decision too")
			case f.recorded || f.decision != "":
				return a.promptRecorded(cmd.Context(), f)
			}
			return a.promptRender(cmd.Context(), f)
		},
	}
	cmd.Flags().StringVar(&f.service, "service", "", "the service to ask about; the same as naming it alone")
	cmd.Flags().BoolVar(&f.recorded, "recorded", false, "show what a model was asked last about the service, and what it said")
	cmd.Flags().StringVar(&f.decision, "decision", "", "show what a model was asked for this decision, e.g. d118")
	cmd.Flags().StringVar(&f.ledger, "ledger", "", "read this export instead of the configured ledger; - is standard input")
	exclude(cmd, "decision", "recorded")
	exclude(cmd, "decision", "service")
	outputFlag(cmd, &f.output, formatTable, formatJSON, formatYAML)
	return cmd
}

// named takes the service as an argument, as plan and explain do.
func (f *promptFlags) named(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case len(args) > 1:
		return usageError(cmd, "want one service, got %s", count(len(args), "argument"))
	case f.service != "" && f.service != args[0]:
		return usageError(cmd, "two services: the argument %q, and --service %q", args[0], f.service)
	case f.decision != "":
		return usageError(cmd, "--decision and a service exclude each other: the decision is of one")
	}
	f.service = args[0]
	return nil
}

// promptFolder is the configured folder of templates, or the built-in one.
func (s site) promptFolder() (folder fs.FS, name string, err error) {
	return promptsAt(s.cfg.Prompts)
}

func promptsAt(path string) (folder fs.FS, name string, err error) {
	if path == "" {
		return prompts.FS, "built-in prompts", nil
	}
	folder, err = openFolder(path, maxFile)
	return folder, path, err
}

// promptTemplate is one of the templates.
type promptTemplate struct {
	ID      string `json:"id"`
	Version string `json:"version"`
	Digest  string `json:"digest"`
}

func templatesOf(p *propose.Prompts) []promptTemplate {
	var out []promptTemplate
	for _, t := range p.Templates() {
		out = append(out, promptTemplate{t.ID, t.Version, t.Digest})
	}
	return out
}

// promptRendering is the answer of `prompt render -o json`.
type promptRendering struct {
	web.Meta
	Service string `json:"service"`
	State   string `json:"state"`
	Reason  string `json:"reason"`
	// Asked: a model would be asked now, if the service were in a breach on which it
	// may be; otherwise Why says why none is, e.g. for a limit that is used up.
	Asked bool   `json:"asked"`
	Why   string `json:"why,omitempty"`
	// Reply is how the reply is asked for; with json_object no schema is sent.
	Reply  string          `json:"reply"`
	System string          `json:"system"`
	User   string          `json:"user"`
	Schema json.RawMessage `json:"schema"`
	// EstimatedTokens is of all three, Limit proposer.promptTokens.
	EstimatedTokens int `json:"estimatedTokens"`
	Limit           int `json:"limit"`
	// Omitted counts what is not in it: for size, or because there is too much.
	Omitted   promptOmitted    `json:"omitted"`
	Templates []promptTemplate `json:"templates"`
	// Digest is the SHA-256 of system, user and schema, a NUL between them.
	Digest string `json:"digest"`
}

type promptOmitted struct {
	Tried   int `json:"tried"`
	Rows    int `json:"rows"`
	Changes int `json:"changes"`
}

func (a *app) promptRender(ctx context.Context, f promptFlags) error {
	s, err := a.site()
	if err != nil {
		return err
	}
	folder, _, err := s.promptFolder()
	if err != nil {
		return err
	}
	templates, err := propose.LoadPrompts(folder)
	if err != nil {
		return err
	}
	loop, done, err := a.onlooker(ctx, s, false)
	if err != nil {
		return err
	}
	defer done()
	svc, ok := loop.Set().Service(f.service)
	if !ok {
		return unknownService(loop.Set(), f.service)
	}
	request, err := loop.Question(ctx, f.service)
	if err != nil {
		return err
	}
	out, err := rendering(s.cfg, templates, request)
	if err != nil {
		return err
	}
	limited, _ := loop.Set().Mode(svc.Name, request.Now)
	out.Why = unasked(s.cfg, min(limited, svc.Remediation.Mode, s.cfg.Limits.MaxMode))
	if out.Why == "" {
		loop.View(func(past *ledger.State) { out.Why = usedUp(s.cfg.Proposer.Limits, past, request) })
	}
	out.Asked = out.Why == ""
	return a.showRendering(out, f.output)
}

// unasked says why no model is asked about a service, whatever happens; "" where
// one is.
func unasked(cfg config.Config, mode spec.Mode) string {
	switch {
	case cfg.Proposer.Provider != "openai":
		return "proposer.provider is " + cfg.Proposer.Provider
	case mode == spec.Observe:
		return "in mode observe only the rules are asked"
	}
	return ""
}

// usedUp says which limit keeps a model from being asked now, as the ledger has
// it; without one nothing was asked.
func usedUp(l config.ProposerLimits, past *ledger.State, r propose.Request) string {
	limits := propose.Limits{CallsPerHour: l.CallsPerHour, CallsPerServicePerHour: l.CallsPerServicePerHour, TokensPerDay: l.TokensPerDay}
	if reached := limits.Reached(past.Calls, r.Service.Name, r.Now); reached != "" {
		return "a limit is used up, " + reached
	}
	return ""
}

// replyMode is how the first endpoint is held to the schema.
func replyMode(p config.Proposer) string {
	if len(p.Endpoints) > 0 && p.Endpoints[0].Reply != "" {
		return p.Endpoints[0].Reply
	}
	return p.Reply
}

// rendering is a request in the words that a model gets.
func rendering(cfg config.Config, templates *propose.Prompts, r propose.Request) (promptRendering, error) {
	out := promptRendering{
		Meta: web.Meta{APIVersion: spec.Group, Kind: "PromptRendering"}, Service: r.Service.Name,
		State: string(r.Assessment.State), Reason: string(r.Assessment.Reason),
		Reply: replyMode(cfg.Proposer), Limit: cfg.Proposer.PromptTokens, Templates: templatesOf(templates),
	}
	schema, err := propose.WireSchema(r.Catalogue)
	if err != nil {
		return out, err
	}
	out.Schema = schema
	sent := schema
	if out.Reply == "json_object" {
		sent = nil
	}
	p, err := templates.Fit(r, out.Limit, len(sent))
	if err != nil {
		return out, err
	}
	out.System, out.User, out.EstimatedTokens = p.System, p.User, p.Tokens
	out.Omitted = promptOmitted{Tried: p.TriedOmitted, Rows: p.RowsOmitted, Changes: p.ChangesOmitted}
	sum := sha256.Sum256([]byte(strings.Join([]string{p.System, p.User, string(sent)}, "\x00")))
	out.Digest = hex.EncodeToString(sum[:])
	return out, nil
}
